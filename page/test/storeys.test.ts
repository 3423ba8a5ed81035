import assert from "node:assert/strict";
import { test } from "node:test";
import { Actions } from "../src/actions.ts";
import { startView } from "../src/controls.ts";
import type { Notice } from "../src/panel/notice.ts";
import { SavedCaster } from "../src/saved.ts";
import type { StageApi } from "../src/stage/stage.ts";
import { Store } from "../src/store.ts";
import { storeysOf } from "../src/storeys.ts";
import type { CameraState, SceneModel } from "../src/types.ts";
import { sceneOfBoxes } from "./scenes.ts";

const FIRST = { eye: [9, -9, 9], target: [0, 0, 0], up: "z", orthographic: false, height: 1, fov: 45 } as CameraState;

/** Two storeys of 3 and 2 from 0 on, whose names are not in their order; a lift of the lower one reaches through both. */
function building(name = "storey"): SceneModel {
  const rows: [number, number, number][] = [[3, 5, 0], [3, 4, 0], [0, 3, 1], [0, 5, 1], [0, 2, 1], [2.8, 3, 0], [3, 5, 0]];
  const lower = Float64Array.from(rows.flatMap(([low], k) => [2 * k, 0, low]));
  const upper = Float64Array.from(rows.flatMap(([, high], k) => [2 * k + 1, 1, high]));
  const codes = Uint32Array.from(rows, ([, , code]) => code);
  return {
    ...sceneOfBoxes(),
    objects: rows.length,
    bounds: [[0, 0, 0], [13, 1, 5]],
    geometries: [{ type: "boxes", firstObject: 0, objects: rows.length, primitives: rows.length, lower, upper }],
    labels: [{ name, kind: "class", words: ["attic", "ground"], codes }],
    levels: name,
    names: null,
    classes: null,
  };
}

/** Actions with a stage that has a camera only. */
function page(model: SceneModel) {
  let camera = FIRST;
  const views: string[] = [];
  const stage = {
    camera: () => camera,
    setCamera: (other: CameraState) => (camera = other),
    standardView: (view: string) => views.push(view),
  } as unknown as StageApi;
  const store = new Store(model, startView(model, false));
  return { store, views, stage, actions: new Actions(store, stage, new SavedCaster(model, ""), {} as Notice) };
}

test("storeys are in the order of their floors, and are cut below the next one", () => {
  const [ground, attic] = storeysOf(building());
  assert.deepEqual([ground.name, attic.name], ["ground", "attic"]);
  assert.ok(ground.at > 1 && ground.at < 2);
  assert.ok(attic.at > 3.5 && attic.at < 4);
});

test("layers of a drawing, and one storey alone, are no storeys", () => {
  assert.deepEqual(storeysOf(building("layer")), []);
  const one = building();
  one.labels = [{ name: "storey", kind: "class", words: ["a"], codes: new Uint32Array(7) }];
  assert.deepEqual(storeysOf(one), []);
  assert.deepEqual(storeysOf(sceneOfBoxes()), []);
});

test("a floor plan is cut, seen from above without perspective, and taken back", () => {
  const { actions, store, stage, views } = page(building());
  const [ground, attic] = actions.storeys;
  actions.cutTo("x", [1, 8]);
  actions.showStorey(ground);
  assert.deepEqual([store.sectionOf("z"), store.sectionOf("x")], [[0, ground.at], [1, 8]]);
  assert.deepEqual([stage.camera().orthographic, views, actions.storey], [true, ["top"], ground]);
  actions.stepStorey(1);
  assert.equal(actions.storey, attic);
  actions.stepStorey(1);
  assert.deepEqual([actions.storey, stage.camera(), store.state.camera], [null, FIRST, FIRST]);
  assert.deepEqual(store.sectionOf("z"), [0, 5]);
  actions.stepStorey(-1);
  assert.equal(actions.storey, attic);
});

test("a floor plan that a link shows is taken back, too", () => {
  const { actions, store, stage, views } = page(building());
  store.set({ cut: [{ axis: "z", on: true, at: actions.storeys[0].at, flip: false }] });
  stage.setCamera({ ...FIRST, orthographic: true });
  actions.showStorey(null);
  assert.deepEqual([store.state.cut, stage.camera().orthographic, views], [[], false, ["iso"]]);
});

test("the keys of storeys change nothing where there are none", () => {
  const { actions, store } = page(building("layer"));
  actions.cutTo("z", [1, 2]);
  actions.stepStorey(1);
  assert.deepEqual(store.sectionOf("z"), [1, 2]);
});
