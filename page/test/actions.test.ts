import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Actions } from "../src/actions.ts";
import type { Notice } from "../src/panel/notice.ts";
import { SavedCaster } from "../src/saved.ts";
import { absence, chosenHit } from "../src/selected.ts";
import { startView } from "../src/controls.ts";
import { Store } from "../src/store.ts";
import type { StageApi } from "../src/stage/stage.ts";
import type { Ray } from "../src/types.ts";
import { sceneOfBoxes } from "./scenes.ts";

const model = { ...sceneOfBoxes(), labels: [], classes: null, names: null };
const lower = model.geometries[0].type === "boxes" ? model.geometries[0].lower : null;
for (let at = 0; at < 15; at += 3) lower![at + 2] = 0; // all five in one row along x

const ALONG: Ray = { origin: [-1, 0.5, 0.5], direction: [1, 0, 0], tMin: 0, tMax: Infinity };
let store: Store;
let actions: Actions;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  store = new Store(model, startView(model, false));
  const errors = { error: assert.fail, info: assert.fail } as unknown as Notice;
  actions = new Actions(store, {} as StageApi, new SavedCaster(model, ""), errors);
  store.changed(["cut"], () => actions.cutChanged());
  store.changed(["hidden"], () => actions.filtersChanged());
});
afterEach(() => mock.timers.reset());

/** Objects of the answer, once all that was begun is done. */
async function hits(): Promise<number[] | undefined> {
  mock.timers.tick(1000);
  await new Promise(setImmediate);
  return store.state.answer?.hits.map((hit) => hit.object);
}

test("the shown ray is cast again when planes are set, moved, changed for the other side, or cleared", async () => {
  await actions.pick(ALONG);
  assert.deepEqual(await hits(), [0, 1, 2, 3, 4]);
  actions.cutTo("x", [-Infinity, 3.5]);
  assert.deepEqual(await hits(), [0, 1]);
  actions.cutTo("x", [-1, 4.5]);
  assert.deepEqual(await hits(), [0, 1, 2]);
  actions.cutTo("x", [4.5, 9]);
  assert.deepEqual(await hits(), [2, 3, 4]);
  actions.cutTo("x", null);
  assert.deepEqual(await hits(), [0, 1, 2, 3, 4]);
  actions.cutTo("x", [4.5, Infinity]);
  actions.setHidden([3], true);
  assert.deepEqual(await hits(), [2, 4]);
  store.set({ cut: [] });
  assert.deepEqual(await hits(), [0, 1, 2, 4]);
  assert.equal(store.state.rayCount, 1, "it is one ray: no panel opens again");
});

test("the box around the selection cuts on all axes, and keeps the free plane", async () => {
  store.set({ cut: [{ axis: "free", on: false, at: 0, flip: false, point: [0, 0, 0], normal: [1, 0, 0] }] });
  await actions.pick({ ...ALONG, origin: [2.5, 0.5, 9], direction: [0, 0, -1] });
  actions.cutAroundSelection();
  const planes = store.state.cut.map(({ axis, at, flip }) => `${axis}${flip ? ">" : "<"}${at}`);
  // The scene is no larger on y.
  assert.deepEqual(planes, ["free<0", "x>2", "x<3", "z<2"]);
  assert.deepEqual(store.sectionOf("x"), [2, 3]);
  await actions.pick(ALONG);
  assert.deepEqual(await hits(), [1]);
});

test("settled waits for an answer with the filters and the cut as they are", async () => {
  void actions.pick(ALONG);
  await actions.settled();
  assert.equal(store.state.answer!.hits.length, 5);
  actions.cutTo("x", [-Infinity, 3.5]);
  actions.setHidden([1], true);
  await actions.settled(); // before the pause ends
  assert.deepEqual(
    store.state.answer!.hits.map((hit) => hit.object),
    [0],
  );
});

test("the chosen hit stays chosen while it is hit", async () => {
  await actions.pick(ALONG);
  actions.choose(store.state.answer!.hits[3]);
  actions.cutTo("x", [3.5, Infinity]);
  assert.deepEqual(await hits(), [2, 3, 4]);
  assert.equal(chosenHit(store)!.object, 3);
  assert.deepEqual(store.state.selection, [3]);
  actions.cutTo("x", [7.5, Infinity]);
  assert.deepEqual(await hits(), [4]);
  assert.equal(chosenHit(store), null, "what is cut away is no hit");
  assert.deepEqual([store.state.selection, absence(store, 3)], [[3], "cut away"]);
  store.set({ cut: [] });
  assert.deepEqual(await hits(), [0, 1, 2, 3, 4]);
  assert.equal(chosenHit(store)!.object, 3);
});

test("a ray of which the cut leaves nothing hits nothing, and comes back", async () => {
  await actions.pick(ALONG);
  actions.cutTo("y", [-Infinity, 0.25]);
  assert.deepEqual(await hits(), []);
  assert.equal(chosenHit(store), null);
  store.set({ cut: [] });
  assert.deepEqual(await hits(), [0, 1, 2, 3, 4]);
});

test("a line of sight has the same ends while the cut changes", async () => {
  actions.setSight(true);
  await actions.pick(ALONG);
  await actions.pick({ ...ALONG, origin: [20, 0.5, 0.5], direction: [-1, 0, 0] });
  assert.deepEqual(await hits(), [1, 2, 3]);
  actions.cutTo("x", [-Infinity, 3.5]);
  assert.deepEqual(await hits(), [1]);
  store.set({ cut: [] });
  assert.deepEqual(await hits(), [1, 2, 3]);
});

test("a ray that Python casts follows the cut, and one that is removed stays so", async () => {
  actions.show({ ray: { ...ALONG, tMax: 6 }, hits: [], total: 0, row: null });
  actions.cutTo("x", [-Infinity, 2.5]);
  assert.deepEqual(await hits(), [0, 1]);
  actions.cutTo("x", null);
  assert.deepEqual(await hits(), [0, 1, 2]);
  actions.clearRay();
  store.set({ cut: [] });
  assert.equal(await hits(), undefined);
});

test("a click whose answer is on its way as the cut changes is not lost", async () => {
  await actions.pick(ALONG);
  void actions.pick({ ...ALONG, origin: [4.5, 0.5, 9], direction: [0, 0, -1] });
  actions.cutTo("z", [-Infinity, 0.75]);
  assert.deepEqual(await hits(), [2]);
  assert.deepEqual(store.state.selection, [2]);
});

test("a selection that a range or a click hides is shown again, and other ranges stay", () => {
  const heights = { name: "height", kind: "number" as const, values: Float64Array.of(1, 2, 3, 4, NaN) };
  const widths = { name: "width", kind: "number" as const, values: Float64Array.of(7, 7, 7, 8, 9) };
  store = new Store({ ...model, labels: [heights, widths] }, startView(model, false));
  actions = new Actions(store, {} as StageApi, new SavedCaster(model, ""), {} as Notice);
  store.set({ hidden: [0, 1], ranges: { height: [2, 3], width: [7, 8] }, selection: [0] });
  actions.showSelection();
  assert.deepEqual([store.state.hidden, store.state.ranges], [[1, 1], { width: [7, 8] }]);
  assert.deepEqual([...store.visibility.shown], [1, 0, 1, 1, 0]);
  store.undo();
  assert.deepEqual(store.state.ranges, { height: [2, 3], width: [7, 8] });
});
