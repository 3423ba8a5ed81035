import assert from "node:assert/strict";
import { test } from "node:test";

import { Actions } from "../src/actions.ts";
import type { Notice } from "../src/panel/notice.ts";
import { SavedCaster } from "../src/saved.ts";
import { startView } from "../src/controls.ts";
import { Store } from "../src/store.ts";
import type { StageApi } from "../src/stage/stage.ts";
import type { Vec3 } from "../src/types.ts";
import { sceneOfBoxes } from "./scenes.ts";

const TALL = Float64Array.from([0, 1, 2, 3, 4].flatMap((x) => [2 * x, 0, 0]));

/** Five boxes in a row along x, of equal height. */
function page() {
  const scene = sceneOfBoxes();
  const [boxes] = scene.geometries;
  if (boxes.type !== "boxes") throw new Error("boxes");
  const model = { ...scene, geometries: [{ ...boxes, lower: TALL, upper: TALL.map((value) => value + 1) }] };
  const notices: string[] = [];
  const say = (text: string) => void notices.push(text);
  const store = new Store(model, startView(model, false));
  const notice = { error: say, info: say } as unknown as Notice;
  const actions = new Actions(store, {} as StageApi, new SavedCaster(model, ""), notice);
  const down = (x: number) => ({ origin: [x, 0.5, 9] as Vec3, direction: [0, 0, -1] as Vec3, tMin: 0, tMax: Infinity });
  return { actions, store, notices, click: (x: number) => actions.pick(down(x)) };
}

test("two clicks set the ends of a line of sight, whose objects do not count", async () => {
  const { actions, store, notices, click } = page();
  actions.setSight(true);
  await click(0.5);
  assert.deepEqual(store.state.sight, [{ point: [0.5, 0.5, 1], object: 0 }]);
  await click(1.5);
  assert.equal(notices.length, 1); // nothing is there
  await click(6.5);
  const { answer, sight, selection, ray } = store.state;
  assert.deepEqual([sight, selection, ray], [[], [1], null]);
  assert.deepEqual(answer!.ray, { origin: [0.5, 0.5, 1], direction: [6, 0, 0], tMin: 0, tMax: 1 });
  assert.deepEqual([answer!.hits.map(({ object }) => object), answer!.total, answer!.ends], [[1, 2], 2, [0, 3]]);
  await click(0.5);
  await click(2.5);
  assert.deepEqual([store.state.answer!.hits, store.state.answer!.total], [[], 0]);
  actions.setSight(false);
  await click(4.5);
  assert.equal(store.state.answer!.ends, undefined);
});

test("one point twice is no line of sight", async () => {
  const { actions, store, notices, click } = page();
  actions.setSight(true);
  await click(0.5);
  await click(0.5);
  assert.match(notices[0], /two points/);
  assert.deepEqual(store.state.sight, []);
});
