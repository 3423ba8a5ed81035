import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, freeRectangle, projector, standardDirection, type Viewport } from "../src/stage/camera.ts";
import { drawnReach, limitsOf, reachOf } from "../src/stage/hull.ts";
import type { Bounds } from "../src/stage/vec.ts";
import type { CameraState, MeshGeometry, SceneModel, Vec3 } from "../src/types.ts";
import { sceneOfBoxes } from "./scenes.ts";

const AXES: Vec3[] = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const ALL: Bounds = { lower: [-99, -99, -99], upper: [99, 99, 99] };
const everything = () => true;

test("only what is drawn counts, and of that what a cut leaves", () => {
  const model = sceneOfBoxes();
  assert.deepEqual(drawnReach(model, everything, ALL)(AXES), [[0, 9], [0, 1], [0, 5]]);
  assert.deepEqual(drawnReach(model, (object) => object === 1 || object === 2, ALL)(AXES), [[2, 5], [0, 1], [1, 3]]);
  const cut = [{ axis: "x", on: true, at: 4.5, flip: false }, { axis: "z", on: false, at: 0, flip: false }];
  assert.deepEqual(drawnReach(model, everything, limitsOf(ALL, cut))(AXES), [[0, 4.5], [0, 1], [0, 3]]);
});

test("copies, cells and triangles reach as far as their corners", () => {
  const edges = [0, 1, 2].map(() => Float64Array.of(0, 2, 4)) as [Float64Array, Float64Array, Float64Array];
  const base = { firstObject: 0, primitives: 1 };
  const grid = { ...base, type: "grid" as const, objects: 2, edges, occupied: null, cells: Float64Array.of(0, 7), visible: Uint32Array.of(1) };
  const turn = Float64Array.of(0, -1, 0, 5, 1, 0, 0, 0, 0, 0, 1, 0);
  const box = { ...base, type: "boxes" as const, objects: 1, lower: Float64Array.of(0, 0, 0), upper: Float64Array.of(2, 1, 1) };
  const copies = { ...base, type: "instances" as const, objects: 1, transforms: turn, base: box };
  const of = (geometry: SceneModel["geometries"][number]) =>
    drawnReach({ ...sceneOfBoxes(), geometries: [geometry] }, everything, ALL)(AXES);
  assert.deepEqual(of(grid), [[2, 4], [2, 4], [2, 4]]);
  assert.deepEqual(of(copies), [[4, 5], [0, 2], [0, 1]]);
  assert.deepEqual(of(diamond()), [[-1, 1], [-1, 1], [0, 0]]);
});

/** Two triangles of a square whose corners are on the axes: its box is twice as large. */
function diamond(): MeshGeometry {
  return {
    ...{ type: "mesh", firstObject: 0, objects: 1, primitives: 2 },
    vertices: Float64Array.of(1, 0, 0, 0, 1, 0, -1, 0, 0, 0, -1, 0, 77, 77, 77),
    faces: Uint32Array.of(0, 1, 2, 0, 2, 3),
    triangleObjects: Uint32Array.of(0, 0),
    edges: new Uint32Array(),
  };
}

test("what is fitted fills the free part of the picture, which its box would not", () => {
  const view: Viewport = { width: 800, height: 600, insets: { top: 50, right: 0, bottom: 0, left: 0 } };
  const camera: CameraState = { eye: [1, 1, 1], target: [0, 0, 0], up: "z", orthographic: false, height: 1, fov: 45 };
  const model = { ...sceneOfBoxes(), geometries: [diamond()] };
  const points: Vec3[] = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]];
  const eye = standardDirection("iso", "z");
  const filled = (reach: Parameters<typeof fit>[2]) => {
    const free = freeRectangle(view);
    const pixels = points.map(projector(fit(camera, view, reach, eye), view));
    const [xs, ys] = [pixels.map(({ x }) => x), pixels.map(({ y }) => y)];
    return Math.max((Math.max(...xs) - Math.min(...xs)) / free.width, (Math.max(...ys) - Math.min(...ys)) / free.height);
  };
  assert.ok(Math.abs(filled(drawnReach(model, everything, ALL)) - 0.92) < 0.01);
  assert.ok(filled(reachOf([[-1, -1, 0], [1, -1, 0], [-1, 1, 0], [1, 1, 0]])) < 0.75);
});
