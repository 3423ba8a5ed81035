import assert from "node:assert/strict";
import { test } from "node:test";
import { copiedRows } from "../src/stage/copies.ts";
import { GridLayer } from "../src/stage/grid.ts";
import type { LayerView } from "../src/stage/layer.ts";
import { layersOf } from "../src/stage/layers.ts";
import { joinedMeshes, type MeshRows, meshRows, OWNER } from "../src/stage/mesh.ts";
import { sharedUniforms } from "../src/stage/program.ts";
import type { Pass } from "../src/stage/shaders.ts";
import { cross, dot, sub } from "../src/stage/vec.ts";
import type { BoxesGeometry, Geometry, GridGeometry, InstancesGeometry, MeshGeometry, SceneModel, Vec3 } from "../src/types.ts";

const BOUNDS = { lower: [-1, -1, -1] as Vec3, upper: [101, 101, 101] as Vec3 };
const VIEW: LayerView = {
  eye: [0, 0, 500],
  forward: [0, 0, -1],
  orthographic: true,
  pixels: 1,
  dotsBelow: 3,
  mostBoxes: Infinity,
  choose: false,
  look: new Uint8Array(0),
  stride: 1,
  cut: true,
  sides: [],
};
const PASSES: Pass[] = ["opaque", "ties", "translucent", "lines"];
/** Calls of a picture that are not those of layers: rays, points, outlines, the ray cast, marks; three for the screen. */
const OTHERS = 8;
const IDENTITY = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0];

function boxes(count: number, firstObject = 0): BoxesGeometry {
  const lower = Float64Array.from({ length: 3 * count }, (_, i) => (i * 7919) % 100);
  return { type: "boxes", firstObject, objects: count, primitives: count, lower, upper: lower.map((x) => x + 0.1 + x / 20) };
}

function mesh(count: number, firstObject = 0): MeshGeometry {
  return {
    type: "mesh",
    firstObject,
    objects: 1,
    primitives: count,
    vertices: Float64Array.from({ length: 9 * count }, (_, i) => Math.abs(100 * Math.sin(i))),
    faces: Uint32Array.from({ length: 3 * count }, (_, i) => i),
    triangleObjects: new Uint32Array(count),
    edges: Uint32Array.of(0, 1, 1, 2),
  };
}

/** Returns the sides of triangles that share no vertex, as pairs of vertices. */
function sides(triangles: number): Uint32Array {
  const next = (vertex: number) => (vertex % 3 === 2 ? vertex - 2 : vertex + 1);
  return Uint32Array.from({ length: 6 * triangles }, (_, i) => (i % 2 === 0 ? i / 2 : next((i - 1) / 2)));
}

function grid(firstObject: number, outline: boolean): GridGeometry {
  const edges: GridGeometry["edges"] = [Float64Array.of(0, 1, 2), Float64Array.of(0, 1), Float64Array.of(0, 1)];
  const cells = outline ? null : Float64Array.of(0, 1);
  const size = { firstObject, objects: outline ? 1 : 2, primitives: 2 };
  return { type: "grid", ...size, edges, occupied: null, cells, visible: outline ? null : Uint32Array.of(0, 1) };
}

function copies(base: BoxesGeometry | MeshGeometry, firstObject: number, transforms = [...IDENTITY, ...IDENTITY]): InstancesGeometry {
  const objects = transforms.length / 12;
  return { type: "instances", firstObject, objects, primitives: objects, base, transforms: Float64Array.from(transforms) };
}

/** Ten kinds of geometries, ten times each; objects are numbered through all of them. */
function hundred(): Geometry[] {
  let first = 0;
  return Array.from({ length: 100 }, (_, k) => {
    const normals = Float64Array.of(0, 0, 1);
    const planes = { points: Float64Array.of(0, 0, k), normals, offsets: Float64Array.of(k) };
    const makes: ((at: number) => Geometry)[] = [
      (at) => boxes(10_000, at),
      (at) => boxes(1, at),
      (at) => mesh(20_000, at),
      (at) => mesh(1, at),
      (at) => grid(at, false),
      (at) => grid(at, true),
      (at) => copies(boxes(3), at),
      (at) => copies(mesh(100), at),
      (at) => ({ type: "planes", firstObject: at, objects: 1, primitives: 1, ...planes }),
      (at) => boxes(0, at),
    ];
    const made = makes[k % 10](first);
    first += made.objects;
    return made;
  });
}

/** Returns the draw calls and the bytes of a scene that is cut, with opaque and translucent objects. */
function cost(geometries: Geometry[]) {
  const model = { ...({} as SceneModel), geometries, shift: [0, 0, 0] as Vec3 };
  const layers = layersOf(model, BOUNDS, sharedUniforms());
  const objects = geometries.reduce((sum, one) => sum + one.objects, 0);
  const look = new Uint8Array(4 * objects).fill(255);
  for (const layer of layers) if (layer instanceof GridLayer) layer.update(look, []);
  const parts = PASSES.flatMap((pass) => layers.flatMap((layer) => layer.parts(pass, { ...VIEW, look })));
  return { calls: parts.length + OTHERS, bytes: layers.reduce((sum, layer) => sum + layer.bytes, 0) };
}

for (const [name, geometries] of Object.entries({
  "a hundred geometries": hundred(),
  "a million boxes": [boxes(1_000_000)],
  "two million triangles, all sides sharp": [{ ...mesh(2_000_000), edges: sides(2_000_000) }],
  "boxes and triangles": [boxes(200_000), mesh(500_000, 200_000)],
})) {
  test(`${name} need at most 50 draw calls and 150 MB`, () => {
    const { calls, bytes } = cost(geometries);
    assert.ok(calls <= 50, `${calls} calls`);
    assert.ok(bytes <= 150e6, `${bytes} bytes`);
  });
}

const objectOf = (rows: MeshRows, vertex: number) => rows.objects[OWNER * rows.owners[vertex]];

test("joined triangles have the vertices, objects and edges of each mesh", () => {
  const all = [mesh(2, 3), mesh(1, 9)].map((one) => meshRows(one, [0, 0, 0]));
  const rows = joinedMeshes(all);
  const corners = (one: typeof rows) => [...one.faces].map((vertex) =>
    [...one.points.subarray(3 * vertex, 3 * vertex + 3), objectOf(one, vertex)].join(" "));
  assert.deepEqual(corners(rows).sort(), all.flatMap(corners).sort());
  assert.deepEqual([...rows.edges], [0, 1, 1, 2, 6, 7, 7, 8]);
});

test("copies of a box are its triangles where each copy has it, outward, also in a mirror", () => {
  const unit: BoxesGeometry = { ...boxes(1), lower: Float64Array.of(0, 0, 0), upper: Float64Array.of(1, 1, 1) };
  const moved = [2, 0, 0, 10, 0, 2, 0, 0, 0, 0, 2, 0];
  const mirrored = [-1, 0, 0, 5, 0, 1, 0, 0, 0, 0, 1, 0];
  const rows = copiedRows(copies(unit, 4, [...moved, ...mirrored]), [1, 0, 0]);
  const point = (vertex: number) => [...rows.points.subarray(3 * vertex, 3 * vertex + 3)] as Vec3;
  const middles: Vec3[] = [[10, 1, 1], [3.5, 0.5, 0.5]];
  for (let i = 0; i < 24; i++) {
    const [a, b, c] = [...rows.faces.subarray(3 * i, 3 * i + 3)];
    const copy = Math.floor(i / 12);
    assert.deepEqual([a, b, c].map((vertex) => objectOf(rows, vertex)), new Array(3).fill(4 + copy));
    const normal = cross(sub(point(b), point(a)), sub(point(c), point(a)));
    assert.ok(dot(normal, sub(point(a), middles[copy])) > 0, "outward");
  }
  assert.deepEqual([rows.objects[2], rows.objects[OWNER + 2]], [2, 1]);
  assert.equal(rows.edges.length, 48);
});
