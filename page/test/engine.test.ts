import assert from "node:assert/strict";
import { test } from "node:test";

import { Engine, MOST_HITS } from "../src/engine/engine.ts";
import type { BoxesGeometry, Geometry, GridGeometry, MeshGeometry, Ray, Vec3 } from "../src/types.ts";

function ray(origin: Vec3, direction: Vec3, tMin = 0, tMax = Infinity): Ray {
  return { origin, direction, tMin, tMax };
}

function boxes(rows: [Vec3, Vec3][], firstObject = 0): BoxesGeometry {
  const lower = Float64Array.from(rows.flatMap(([low]) => low));
  const upper = Float64Array.from(rows.flatMap(([, high]) => high));
  return { type: "boxes", firstObject, objects: rows.length, primitives: rows.length, lower, upper };
}

const UNIT: [Vec3, Vec3] = [[0, 0, 0], [1, 1, 1]];

function listed(geometries: Geometry[], one: Ray, pickable: Uint8Array | null = null): number[][] {
  return new Engine({ geometries }).cast(one, pickable).hits.map((hit) => [hit.geometry, hit.object, hit.t]);
}

test("ties are in the order of geometry, then of row", () => {
  const geometries = [boxes([[[2, 0, 0], [3, 1, 1]], UNIT, UNIT]), boxes([UNIT], 3)];
  const found = listed(geometries, ray([-1, 0.5, 0.5], [1, 0, 0]));
  assert.deepEqual(found, [[0, 1, 1], [0, 2, 1], [1, 3, 1], [0, 0, 3]]);
});

test("what is not pickable is not hit", () => {
  const geometries = [boxes([UNIT, UNIT]), boxes([UNIT], 2)];
  const found = listed(geometries, ray([-1, 0.5, 0.5], [1, 0, 0]), Uint8Array.of(0, 1, 0));
  assert.deepEqual(found, [[0, 1, 1]]);
});

test("touching an edge is a hit, and the range of the ray is closed", () => {
  const one = [boxes([UNIT])];
  assert.deepEqual(listed(one, ray([-1, 0, 0.5], [1, 1, 0])), [[0, 0, 1]], "touches the edge x = 0, y = 1");
  assert.deepEqual(listed(one, ray([-1, 2 ** -50, 0.5], [1, 1, 0])), [], "passes it");
  assert.deepEqual(listed(one, ray([-1, 0.5, 0.5], [1, 0, 0], 0, 1)), [[0, 0, 1]]);
  assert.deepEqual(listed(one, ray([-1, 0.5, 0.5], [1, 0, 0], 2, 9)), [[0, 0, 2]]);
  assert.deepEqual(listed(one, ray([-1, 0.5, 0.5], [1, 0, 0], 3, 2)), []);
  assert.deepEqual(listed(one, ray([0.5, 0.5, 0.5], [0, 0, 0], -0)), [[0, 0, 0]]);
});

test("long lists are cut, but counted", () => {
  const row: [Vec3, Vec3][] = Array.from({ length: MOST_HITS + 5 }, () => UNIT);
  const { hits, total } = new Engine({ geometries: [boxes(row)] }).cast(ray([-1, 0, 0], [1, 0, 0]), null);
  assert.deepEqual([hits.length, total], [MOST_HITS, MOST_HITS + 5]);
});

test("rays in the plane of a triangle miss it, through a shared edge they hit both", () => {
  const mesh: MeshGeometry = {
    type: "mesh",
    firstObject: 0,
    objects: 2,
    primitives: 2,
    vertices: Float64Array.of(0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0),
    faces: Uint32Array.of(0, 1, 2, 0, 2, 3),
    triangleObjects: Uint32Array.of(1, 0),
    edges: new Uint32Array(0),
  };
  assert.deepEqual(listed([mesh], ray([-1, 0.5, 0], [1, 0, 0])), []);
  assert.deepEqual(listed([mesh], ray([0.5, 0.5, 3], [0, 0, -2])), [[0, 1, 1.5], [0, 0, 1.5]]);
});

test("a grid of 10^9 cells is crossed cell by cell", () => {
  const axis = Float64Array.from({ length: 1001 }, (_, i) => i);
  const edges: GridGeometry["edges"] = [axis, axis, axis];
  const grid: GridGeometry = { type: "grid", firstObject: 0, objects: 1, primitives: 1e9, edges, occupied: null, cells: null, visible: null };
  const { hits } = new Engine({ geometries: [grid] }).cast(ray([-1, -1, -1], [1, 1, 1]), null);
  assert.equal(hits.length, 1000 + 6 * 999, "through each corner it touches six more cells");
  assert.deepEqual([hits[0].primitive, hits[0].t, hits[0].tExit], [0, 1, 2]);
});

test("numbers that are not finite are refused", () => {
  assert.throws(() => listed([boxes([UNIT])], ray([NaN, 0, 0], [1, 0, 0])), /finite/);
});
