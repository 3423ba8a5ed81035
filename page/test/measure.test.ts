import assert from "node:assert/strict";
import { test } from "node:test";
import { Actions } from "../src/actions.ts";
import { restoredView, startView } from "../src/controls.ts";
import { Engine } from "../src/engine/engine.ts";
import { angleText, measuredText, snappedPoint } from "../src/measure.ts";
import type { Notice } from "../src/panel/notice.ts";
import { SavedCaster } from "../src/saved.ts";
import { halfSpaces } from "../src/stage/cut.ts";
import { length, sub } from "../src/stage/vec.ts";
import type { StageApi } from "../src/stage/stage.ts";
import { Store } from "../src/store.ts";
import type { BoxesGeometry, CutPlane, Geometry, GridGeometry, MeshGeometry, SceneModel, Vec3 } from "../src/types.ts";
import { sceneOfBoxes } from "./scenes.ts";

/** Map coordinates, of which float32 has steps of 1/32 and of 1/128. */
const [X, Y, Z] = [447500.1, 84900.3, 12.7];
const SIZE = { firstObject: 0, objects: 1, primitives: 1 };
const BOX: BoxesGeometry = {
  type: "boxes",
  ...SIZE,
  lower: Float64Array.of(X, Y, Z),
  upper: Float64Array.of(X + 4.3, Y + 2.9, Z + 1.7),
};
/** Two triangles of a wall of 4 × 2; the edge between them is not drawn. */
const WALL: MeshGeometry = {
  type: "mesh",
  ...SIZE,
  primitives: 2,
  vertices: Float64Array.of(X, Y, Z, X + 4, Y, Z, X + 4, Y, Z + 2, X, Y, Z + 2),
  faces: Uint32Array.of(0, 1, 2, 0, 2, 3),
  triangleObjects: Uint32Array.of(0, 0),
  edges: Uint32Array.of(0, 1, 1, 2, 2, 3, 3, 0),
};

/** Returns the measured point of the ray down, or along y, at a place; a length of 1 has 100 pixels. */
function pointAt(geometry: Geometry, at: Vec3, { along = "z", cut = [] as CutPlane[], start = 0 } = {}): Vec3 | null {
  const direction: Vec3 = along === "z" ? [0, 0, -1] : [0, 1, 0];
  const model = { geometries: [geometry] } as SceneModel;
  const [near, up] = along === "z" ? [2, 1] : [1, 2];
  const from = at.map((value, axis) => (axis === near ? value - 50 * direction[axis] : value)) as Vec3;
  const answer = new Engine(model).cast({ origin: from, direction, tMin: start, tMax: Infinity }, null);
  const pixelOf = (point: Vec3): [number, number] => [100 * (point[0] - X), 100 * (point[up] - at[up])];
  return snappedPoint(model, answer, { pixelOf, spaces: halfSpaces(cut) });
}

test("a click near a corner of a box measures the very corner, at map coordinates", () => {
  const top = Z + 1.7;
  assert.deepEqual(pointAt(BOX, [X + 0.05, Y + 0.06, top]), [X, Y, top]);
  assert.deepEqual(pointAt(BOX, [X + 4.25, Y + 2.85, top]), [X + 4.3, Y + 2.9, top]);
});

test("a click near an edge measures a point of the edge, elsewhere one of the face", () => {
  const top = Z + 1.7;
  assert.deepEqual(pointAt(BOX, [X + 2, Y + 0.09, top]), [X + 2, Y, top]);
  assert.deepEqual(pointAt(BOX, [X + 2, Y + 0.11, top]), [X + 2, Y + 0.11, top]);
  assert.equal(pointAt(BOX, [X - 1, Y, top]), null);
});

test("the points of a wall and of its edges, not of the edge between two triangles", () => {
  const onWall = (x: number, z: number) => pointAt(WALL, [X + x, Y, Z + z], { along: "y" });
  assert.deepEqual(onWall(3.95, 1.95), [X + 4, Y, Z + 2]);
  assert.deepEqual(onWall(3.95, 1), [X + 4, Y, Z + 1]);
  assert.deepEqual(onWall(2.02, 1), [X + 2.02, Y, Z + 1]);
});

test("corners of copies are where their matrices put them", () => {
  const base = { ...BOX, lower: Float64Array.of(-1, -1, -1), upper: Float64Array.of(1, 1, 1) };
  // A quarter turn about z, twice as long along x.
  const transforms = Float64Array.of(0, -2, 0, X, 1, 0, 0, Y, 0, 0, 1, Z);
  const copies: Geometry = { type: "instances", ...SIZE, transforms, base };
  assert.deepEqual(pointAt(copies, [X + 1.95, Y + 0.95, Z + 1]), [X + 2, Y + 1, Z + 1]);
  const walls: Geometry = { ...copies, base: { ...WALL, vertices: WALL.vertices.map((value, i) => value - [X, Y, Z][i % 3]) } };
  // The wall lies on its back.
  const upright = Float64Array.of(1, 0, 0, X, 0, 0, 1, Y, 0, -1, 0, Z);
  assert.deepEqual(pointAt({ ...walls, transforms: upright } as Geometry, [X + 3.95, Y + 1, Z]), [X + 4, Y + 1, Z]);
});

test("corners of cells are those of the edges of the grid", () => {
  const edges: GridGeometry["edges"] = [Float64Array.of(X, X + 1, X + 3), Float64Array.of(Y, Y + 2), Float64Array.of(Z, Z + 1)];
  const grid: Geometry = { type: "grid", ...SIZE, objects: 2, primitives: 2, edges, occupied: null, cells: Float64Array.of(0, 1), visible: null };
  assert.deepEqual(pointAt(grid, [X + 2.95, Y + 1.95, Z + 1]), [X + 3, Y + 2, Z + 1]);
});

test("corners that are cut away are not measured, nor is a face where the cut opens a box", () => {
  const top = Z + 1.7;
  assert.deepEqual(pointAt(BOX, [X + 0.05, Y + 1, top]), [X, Y + 1, top]);
  const cut: CutPlane[] = [{ axis: "x", on: true, at: X + 0.02, flip: true }];
  assert.deepEqual(pointAt(BOX, [X + 0.05, Y + 1, top], { cut }), [X + 0.05, Y + 1, top]);
  const [x, y, z] = pointAt(BOX, [X + 0.05, Y + 0.05, Z + 1], { start: 50 })!;
  assert.deepEqual([x, y], [X + 0.05, Y + 0.05]);
  assert.ok(Math.abs(z - Z - 1) < 1e-9);
});

test("measured lengths are those of the coordinates, to the last digits that float64 has", () => {
  const [from, to] = [pointAt(BOX, [X + 0.05, Y + 0.06, Z + 1.7])!, pointAt(BOX, [X + 4.25, Y + 2.85, Z + 1.7])!];
  assert.ok(Math.abs(length(sub(to, from)) - Math.hypot(4.3, 2.9)) < 1e-10);
  assert.equal(measuredText([from, to], "m").replaceAll("\u00a0", " "), "distance 5.18652 m · dx 4.3 m · dy 2.9 m · dz 0 m");
  assert.match(measuredText([from, to, [from[0] + 4.3, from[1], from[2]]], ""), /angle\u00a056\.0035°$/);
  assert.match(measuredText([[8.8, 0, 0], [8.800000000000004, 1, 0]], ""), /dx\u00a00 /);
  assert.equal(angleText([[1, 0, 0], [0, 0, 0], [0, 5, 0]]), "90°");
  assert.match(measuredText([from], "m"), /^447500\.1, 84900\.3, 14\.4 /);
  assert.match(measuredText([], "m"), /^Click two points/);
});

test("clicks set up to three points, then a new line; Escape forgets them, then the tool, then the selection", async () => {
  const model = sceneOfBoxes();
  const store = new Store(model, startView(model, false));
  const notices: string[] = [];
  const notice = { info: (text: string) => notices.push(text), error: assert.fail } as unknown as Notice;
  const stage = { pixelOf: ([x, y]: Vec3) => [x, y].map((value) => 1000 * value) } as unknown as StageApi;
  const actions = new Actions(store, stage, new SavedCaster(model, ""), notice);
  const click = (x: number) => actions.pick({ origin: [x, 0.5, 9], direction: [0, 0, -1], tMin: 0, tMax: Infinity });
  actions.select([3]);
  actions.setSight(true);
  actions.setMeasuring(true);
  assert.equal(store.state.sight, null);
  for (const x of [0.25, 2.25, 1.5, 4.25]) await click(x);
  assert.equal(notices.length, 1); // nothing is at 1.5
  const points = [[0.25, 0.5, 1], [2.25, 0.5, 2], [4.25, 0.5, 3]];
  assert.deepEqual([store.state.measure, store.state.selection, store.state.answer], [points, [3], null]);
  const link = JSON.parse(JSON.stringify(store.view()));
  assert.deepEqual(restoredView(model, link, startView(model, false)).measure, points);
  await click(6.25);
  assert.deepEqual(store.state.measure, [[6.25, 0.5, 4]]);
  for (const measure of [[], null]) {
    actions.escape();
    assert.deepEqual([store.state.measure, store.state.selection], [measure, [3]]);
  }
  actions.escape();
  assert.deepEqual(store.state.selection, []);
});
