import assert from "node:assert/strict";
import { test } from "node:test";
import { middleOfPoints } from "../src/stage/bounds.ts";
import { objectBounds } from "../src/stage/hull.ts";
import { boxRows, faceIndices } from "../src/stage/boxes.ts";
import { lengthText, roundLength } from "../src/stage/furniture.ts";
import { coveredFaces, visibleObjects } from "../src/stage/grid.ts";
import { grouped, rowsOf } from "../src/stage/group.ts";
import { largeBoxes } from "../src/stage/large.ts";
import type { LayerView } from "../src/stage/layer.ts";
import { composeLook } from "../src/stage/looks.ts";
import { meshRows, OWNER } from "../src/stage/mesh.ts";
import { chunkCount, chunkLimits, growingLimits, largestFirst, trianglesLargestFirst } from "../src/stage/order.ts";
import { outlineOf } from "../src/stage/outline.ts";
import { boundsWithPlanes, planeRows } from "../src/stage/planes.ts";
import { drawnAnswer, endOf, nearestLine, raySegments } from "../src/stage/rays.ts";
import type { BoxesGeometry, Geometry, GridGeometry, MeshGeometry, SceneModel, Vec3 } from "../src/types.ts";

const BOUNDS = { lower: [-10, -10, -10] as Vec3, upper: [10, 10, 10] as Vec3 };

function boxes(rows: number[][], firstObject = 0): BoxesGeometry {
  const ends = (from: number) => Float64Array.from(rows.flatMap((row) => row.slice(from, from + 3)));
  const objects = rows.length;
  return { type: "boxes", firstObject, objects, primitives: objects, lower: ends(0), upper: ends(3) };
}

function mesh(vertices: number[], faces: number[], objects: number[], edges: number[] = []): MeshGeometry {
  return {
    type: "mesh",
    firstObject: 5,
    objects: Math.max(...objects) + 1,
    primitives: objects.length,
    vertices: Float64Array.from(vertices),
    faces: Uint32Array.from(faces),
    triangleObjects: Uint32Array.from(objects),
    edges: Uint32Array.from(edges),
  };
}

const model = (geometries: Geometry[]): SceneModel => ({
  ...({} as SceneModel),
  geometries,
  shift: [0, 0, 0],
  bounds: [BOUNDS.lower, BOUNDS.upper],
});

test("few chunks hold all rows", () => {
  assert.equal(chunkCount(0, 8), 1);
  assert.equal(chunkCount(100, 8), 1);
  assert.equal(chunkCount(10_000_000, 8), 8);
  assert.deepEqual(chunkLimits(10, 4), [0, 3, 5, 8, 10]);
});

test("chunks of triangles grow from small ones", () => {
  assert.deepEqual(growingLimits(0, 12), [0]);
  assert.deepEqual(growingLimits(100, 12), [0, 100]);
  const limits = growingLimits(2_000_000, 12);
  assert.equal(limits.length, 13);
  assert.deepEqual([limits[1], limits.at(-1)], [16_384, 2_000_000]);
  assert.ok(limits.every((limit, k) => k === 0 || limit - limits[k - 1] < 300_000));
  for (const most of [1, 2, 3]) {
    const few = growingLimits(2_000_000, most);
    assert.deepEqual([few.length, few.at(-1)], [most + 1, 2_000_000]);
  }
});

test("large rows come first, all rows once", () => {
  const sizes = Float32Array.from({ length: 1000 }, (_, i) => 0.01 + ((i * 7919) % 1000));
  const middles = Float32Array.from({ length: 3000 }, (_, i) => Math.sin(i));
  const order = largestFirst(sizes, middles);
  assert.deepEqual(
    [...order].sort((a, b) => a - b),
    [...sizes.keys()],
  );
  order.forEach((row, i) => assert.ok(i === 0 || sizes[row] <= 2 * sizes[order[i - 1]]));
});

test("rows of equal size stay with their neighbours", () => {
  const middles = Float32Array.from(
    { length: 3 * 4096 },
    (_, i) => [(i / 3) & 15, (i / 48) & 15, (i / 768) & 15][i % 3],
  );
  const order = largestFirst(new Float32Array(4096).fill(1), middles);
  const first = [...order.subarray(0, 512)].map((row) => [...middles.subarray(3 * row, 3 * row + 3)]);
  assert.ok(
    first.every((place) => place.every((value) => value < 8)),
    "an eighth of the rows fills an octant",
  );
});

test("large triangles come first, equal ones in order", () => {
  const points = Float32Array.from([0, 0, 0, 1, 0, 0, 0, 1, 0, 8, 0, 0, 0, 8, 0]);
  const faces = Uint32Array.from([0, 1, 2, 0, 3, 4, 2, 1, 0]);
  assert.deepEqual([...trianglesLargestFirst(points, faces)], [1, 0, 2]);
  const many = Uint32Array.from({ length: 3 * 10_000 }, (_, i) => i % 3);
  const order = trianglesLargestFirst(points, many);
  assert.equal(new Set(order).size, 10_000);
  assert.ok(Math.max(...order.subarray(0, 1024)) > 7000 && Math.min(...order.subarray(0, 1024)) < 3000);
});

test("boxes end at the bounds, relative to the shift", () => {
  const rows = boxRows(boxes([[-Infinity, 0, 4, 1, Infinity, 5]]), [1, 2, 3], BOUNDS);
  assert.deepEqual([...rows.lower.subarray(0, 3)], [-11, -2, 1]);
  assert.deepEqual([...rows.upper.subarray(0, 3)], [0, 8, 2]);
});

test("the last vertex of each triangle of a box is in one face alone", () => {
  const index = faceIndices(2);
  assert.equal(index.length, 36);
  for (let face = 0; face < 6; face++) {
    const own = 7 * (face >= 3 ? 1 : 0) + 4 + (face % 3);
    assert.deepEqual([index[6 * face + 2], index[6 * face + 5]], [own, own]);
  }
});

/** An orthographic view down z of x and y from -10 to 10, ten pixels a length of 1. */
const VIEW: LayerView = {
  eye: [0, 0, 20],
  forward: [0, 0, -1],
  orthographic: true,
  pixels: 10,
  dotsBelow: 5,
  mostBoxes: Infinity,
  choose: true,
  look: new Uint8Array(400).fill(255),
  stride: 1,
  cut: false,
  sides: [
    { normal: [1, 0, 0], offset: 10 },
    { normal: [-1, 0, 0], offset: 10 },
    { normal: [0, 1, 0], offset: 10 },
    { normal: [0, -1, 0], offset: 10 },
  ],
};

test("large boxes in the picture are found; of too many, the largest", () => {
  // Boxes of side 0.1, 0.2, … 9.9 in the picture; one outside, one behind.
  const rows = Array.from({ length: 99 }, (_, i) => [0, 0, 0, 7, 0.1 * (i + 1), 0.1, 0.1, 0]);
  const data = Float32Array.from([...rows, [40, 0, 0, 7, 49, 1, 1, 0], [0, 0, 30, 7, 1, 1, 31, 0]].flat());
  const all = largeBoxes(data, [[0, 101]], VIEW, 1000);
  assert.equal(all.least, 5);
  assert.deepEqual(all.rows, [...Array.from({ length: 95 }, (_, i) => i + 4), 100]);
  const perspective = largeBoxes(data, [[0, 101]], { ...VIEW, orthographic: false, pixels: 200 }, 1000);
  assert.ok(!perspective.rows.includes(100), "what is behind the eye is not in the picture");
  const some = largeBoxes(
    data,
    [
      [0, 50],
      [50, 101],
    ],
    VIEW,
    20,
  );
  assert.ok(some.rows.length <= 20 && some.rows.length > 10);
  assert.ok(some.rows.every((row) => row === 100 || 10 * 0.1 * (row + 1) >= some.least * 0.999));
  assert.ok(some.rows.includes(98));
  assert.equal(largeBoxes(data, [[0, 101]], VIEW, 0).rows.length, 0);
  const hidden = { ...VIEW, look: new Uint8Array(400) };
  assert.equal(largeBoxes(data, [[0, 101]], hidden, 1000).rows.length, 0);
});

test("a vertex of two objects is there for each, in the order of the engine", () => {
  // The second object has the first triangle.
  const rows = meshRows(mesh([0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0], [0, 1, 2, 1, 3, 2], [1, 0]), [0, 0, 0]);
  assert.equal(rows.points.length, 18);
  for (let i = 0; i < 2; i++) {
    const owners = [...rows.faces.subarray(3 * i, 3 * i + 3)].map((vertex) => rows.owners[vertex]);
    assert.equal(new Set(owners).size, 1);
  }
  assert.equal(rows.owners.length, 6);
  assert.deepEqual([0, 1].map((owner) => [...rows.objects.subarray(OWNER * owner, OWNER * owner + 2)]), [[5, 6], [6, 5]]);
});

test("edges of an object are as far apart as its area and their length say", () => {
  const square = [0, 0, 0, 4, 0, 0, 4, 4, 0, 0, 4, 0];
  const vertices = [...square, ...square.map((value) => value / 8 + 9)];
  const [faces, edges] = [[0, 1, 2, 0, 2, 3], [0, 1, 1, 2, 2, 3, 3, 0]].map((rows) => [...rows, ...rows.map((k) => k + 4)]);
  const { objects, owners } = meshRows(mesh(vertices, faces, [0, 0, 1, 1], edges), [1, 2, 3]);
  assert.deepEqual([objects[2], objects[OWNER + 2]], [2, 0.25]);
  assert.deepEqual([...owners], [0, 0, 0, 0, 1, 1, 1, 1]);
});

test("rows are grouped in order", () => {
  const groups = grouped(Uint32Array.from([2, 0, 2, 1, 0]), 4);
  assert.deepEqual(
    [0, 1, 2, 3].map((k) => [...rowsOf(groups, k)]),
    [[1, 4], [3], [0, 2], []],
  );
});

/** A cube of 5 × 5 × 5 cells, all occupied. */
function cube(): GridGeometry {
  const edges = () => Float64Array.from({ length: 6 }, (_, i) => i);
  const cells = Float64Array.from({ length: 125 }, (_, i) => i);
  const shell = [...cells].filter((cell) =>
    [cell % 5, Math.floor(cell / 5) % 5, Math.floor(cell / 25)].some((i) => i % 4 === 0),
  );
  const size = { firstObject: 0, objects: 125, primitives: 125 };
  return {
    type: "grid",
    ...size,
    edges: [edges(), edges(), edges()],
    occupied: null,
    cells,
    visible: Uint32Array.from(shell),
  };
}

test("a grid draws the cells of its shell, and those behind what is hidden", () => {
  const grid = cube();
  assert.equal(visibleObjects(grid, () => 255, []).length, 98);
  const behind = visibleObjects(grid, (object) => (object === 2 ? 0 : 255), []);
  assert.equal(behind.length, 97, "a cell at the edge of the cube has no cell of the inside behind it");
  const hole = visibleObjects(grid, (object) => (object === 12 ? 0 : 255), []);
  assert.ok(hole.includes(12 + 25) && !hole.includes(12));
  assert.equal(hole.length, 98);
});

test("a grid draws cells that a plane cuts, and those behind translucent ones", () => {
  const grid = cube();
  const cut = visibleObjects(grid, () => 255, [{ point: [2.5, 0, 0], normal: [1, 0, 0] }]);
  assert.ok(cut.includes(62), "the cell in the middle is cut");
  assert.ok(!cut.includes(62 + 50) && cut.includes(12));
  const glass = visibleObjects(grid, (object) => (object < 25 ? 128 : 255), []);
  assert.ok(glass.includes(37));
});

test("faces of cells between opaque, whole cells are covered", () => {
  const grid = cube();
  const cells = Uint32Array.of(0, 62, 124);
  assert.deepEqual([...coveredFaces(grid, cells, () => 255, [])], [0b101010, 0b111111, 0b010101]);
  const glass = (object: number) => (object === 63 ? 128 : 255);
  assert.deepEqual([...coveredFaces(grid, Uint32Array.of(62, 63), glass, [])], [0b011111, 0]);
  const cut = coveredFaces(grid, Uint32Array.of(37, 62), () => 255, [{ point: [2.5, 0, 0], normal: [1, 0, 0] }]);
  assert.deepEqual([...cut], [0b111101, 0], "one can look into a cell that is cut");
});

test("bounds of objects: boxes, triangles, copies, cells", () => {
  const base = mesh([0, 0, 0, 1, 0, 0, 0, 2, 3], [0, 1, 2], [0]);
  const triangles = { ...mesh([0, 0, 0, 1, 0, 0, 0, 2, 3, 9, 9, 9], [0, 1, 2, 0, 1, 3], [0, 1]), firstObject: 1 };
  const transforms = Float64Array.from([0, -2, 0, 5, 2, 0, 0, 6, 0, 0, 2, 7]);
  const copies: Geometry = { type: "instances", firstObject: 3, objects: 1, primitives: 1, transforms, base };
  const scene = model([boxes([[-Infinity, 1, 2, 3, 4, 5]]), triangles, copies, { ...cube(), firstObject: 4 }]);
  assert.deepEqual(objectBounds(scene, [0]), { lower: [-10, 1, 2], upper: [3, 4, 5] });
  assert.deepEqual(objectBounds(scene, [1]), { lower: [0, 0, 0], upper: [1, 2, 3] });
  assert.deepEqual(objectBounds(scene, [3]), { lower: [1, 6, 7], upper: [5, 8, 10] });
  assert.deepEqual(objectBounds(scene, [4 + 38]), { lower: [1, 2, 3], upper: [2, 3, 4] });
  assert.deepEqual(objectBounds(scene, [0, 2]), { lower: [-10, 0, 0], upper: [9, 9, 9] });
});

test("the middle of a cloud leaves out few points at each end", () => {
  const xyz = Float64Array.from({ length: 3000 }, (_, i) => (i < 30 ? 1e6 : (i / 3) | 0));
  const bounds = middleOfPoints(xyz);
  assert.ok(bounds.upper[0] < 1000 && bounds.lower[0] >= 10);
});

test("outlines are sharp edges of an object, or its bounds", () => {
  const own = mesh([0, 0, 0, 1, 0, 0, 0, 1, 0, 5, 5, 5, 6, 5, 5, 5, 6, 5], [0, 1, 2, 3, 4, 5], [0, 1], [0, 1, 1, 2]);
  assert.equal(outlineOf(model([own]), 5).length, 12);
  assert.equal(outlineOf(model([own]), 6).length, 72);
});

test("an object of very many edges has the outline of its bounds", () => {
  const edges = Array.from({ length: 2 * 3001 }, (_, i) => i % 2);
  assert.equal(outlineOf(model([mesh([0, 0, 0, 1, 0, 0, 0, 1, 0], [0, 1, 2], [0], edges)]), 5).length, 72);
});

test("planes reach as far as the scene", () => {
  const planes = { type: "planes" as const, firstObject: 0, objects: 1, primitives: 1 };
  const rows = planeRows(
    { ...planes, points: Float64Array.from([0, 0, 1]), normals: Float64Array.from([0, 0, 4]), offsets: Float64Array.of(4) },
    BOUNDS,
    [0, 0, 0],
  );
  assert.equal(rows.faces.length, 6);
  assert.ok(Math.max(...rows.points) > 10 && Math.max(...rows.points) < 11);
});

test("the scene reaches to planes near it, not to those far away", () => {
  const at = (z: number): Geometry => ({
    type: "planes",
    firstObject: 0,
    objects: 1,
    primitives: 1,
    points: Float64Array.from([0, 0, z]),
    normals: Float64Array.from([0, 0, 2]),
    offsets: Float64Array.of(2 * z),
  });
  assert.deepEqual(boundsWithPlanes(BOUNDS, [at(3)]), BOUNDS);
  assert.deepEqual(boundsWithPlanes(BOUNDS, [at(-12)]).lower, [-10, -10, -12]);
  assert.deepEqual(boundsWithPlanes(BOUNDS, [at(500)]), BOUNDS);
});

test("rays end at their hit, at t_max, or at the bounds", () => {
  assert.equal(endOf([-20, 0, 0], [2, 0, 0], Infinity, 7, BOUNDS), 7);
  assert.equal(endOf([-20, 0, 0], [2, 0, 0], Infinity, Infinity, BOUNDS), 15);
  assert.equal(endOf([-20, 0, 0], [2, 0, 0], 12, Infinity, BOUNDS), 12);
  assert.equal(endOf([-20, 30, 0], [2, 0, 0], Infinity, Infinity, BOUNDS), 10);
  assert.ok(endOf([20, 30, 0], [2, 0, 0], Infinity, Infinity, BOUNDS) > 0);
});

const SAMPLE = {
  total: 2,
  row: Uint32Array.from([0, 7]),
  origin: Float64Array.from([-5, 0, 0, 0, -5, 0]),
  direction: Float64Array.from([1, 0, 0, 0, 1, 0]),
  tMin: Float64Array.from([1, 0]),
  tMax: Float64Array.from([Infinity, Infinity]),
};

test("drawn rays begin at t_min, and the nearest to a pixel is found, unless it is hidden or behind the eye", () => {
  const segments = raySegments(SAMPLE, Float64Array.from([3, Infinity]), BOUNDS, [1, 0, 0]);
  assert.deepEqual([...segments.subarray(0, 6)], [-5, 0, 0, -3, 0, 0]);
  const still = raySegments(
    { ...SAMPLE, direction: new Float64Array(6) },
    Float64Array.from([3, Infinity]),
    BOUNDS,
    [1, 0, 0],
  );
  assert.deepEqual([...still], [-6, 0, 0, -6, 0, 0, -1, -5, 0, -1, -5, 0]);
  const project = (point: Vec3) => ({ x: point[0], y: point[1], depth: 10 + point[2] });
  const find = (x: number, y: number, shown = (_: number) => true) =>
    nearestLine(segments, shown, project, [1, 0, 0], { x, y, within: 1 });
  assert.equal(find(-3, 0.4)?.index, 0);
  assert.equal(find(-3, 0.4)?.distance, 0.4);
  assert.equal(find(0.3, 4)?.index, 1);
  assert.equal(find(5, 5), null);
  assert.equal(
    find(-3, 0.4, (i) => i !== 0),
    null,
  );
  const behind = (point: Vec3) => ({ ...project(point), depth: -1 });
  assert.equal(
    nearestLine(segments, () => true, behind, [1, 0, 0], { x: -3, y: 0, within: 1 }),
    null,
  );
});

test("the ray that was cast has marks in order, the first on top", () => {
  const ray = { origin: [-20, 0, 0] as Vec3, direction: [2, 0, 0] as Vec3, tMin: 0, tMax: Infinity };
  const hit = { object: 0, geometry: 0, primitive: 0 };
  const hits = [
    { ...hit, t: 6, tEnter: 6, tExit: 7 },
    { ...hit, t: 8, tEnter: 8, tExit: Infinity },
  ];
  const drawn = drawnAnswer({ ray, hits, total: 2, row: null }, BOUNDS, [0, 0, 0]);
  assert.deepEqual([...drawn.segments], [-20, 0, 0, -8, 0, 0, -8, 0, 0, 10, 0, 0]);
  assert.deepEqual(
    [...drawn.marks].filter((_, i) => i % 3 === 0),
    [-4, -6, -8],
  );
});

test("highlight, fading and what is hidden", () => {
  const rgba = Uint8Array.from([1, 2, 3, 255, 4, 5, 6, 255, 7, 8, 9, 0, 1, 1, 1, 90]);
  const data = new Uint8Array(16);
  assert.deepEqual(composeLook(data, { rgba }, [], null, 4), { opaque: true, translucent: true });
  assert.deepEqual(data, rgba);
  composeLook(data, { rgba }, [2, 1], 26, 4);
  assert.deepEqual([data[3], data[7], data[11], data[15]], [26, 255, 0, 26]);
  composeLook(data, { rgba: Uint8Array.from([1, 1, 1, 10]) }, [], 26, 1);
  assert.equal(data[3], 10, "what is fainter stays so");
  composeLook(data, { rgba }, [0], null, 4);
  assert.deepEqual([...data.subarray(0, 4)], [255, 140, 0, 255]);
});

test("scale bars have round lengths, with a unit where there is one", () => {
  assert.deepEqual([0.7, 1, 3.7, 9, 260].map(roundLength), [0.5, 1, 2, 5, 200]);
  const texts = (unit: string) => [2000, 5, 0.5, 0.002, 0.00002].map((length) => lengthText(length, unit));
  assert.deepEqual(texts("m"), ["2 km", "5 m", "50 cm", "2 mm", "20 µm"]);
  assert.deepEqual(texts("ft"), ["2000 ft", "5 ft", "0.5 ft", "0.002 ft", "0.00002 ft"]);
  assert.deepEqual(texts(""), ["2000", "5", "0.5", "0.002", "0.00002"]);
});

test("the last vertex of each triangle has its colour, and translucent parts have vertices of their own", () => {
  const square = mesh([0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0], [0, 1, 2, 0, 2, 3, 0, 1, 2, 2, 1, 0], [0, 0, 0, 0]);
  const palette = Uint8Array.of(0, 0, 0, 0, 9, 9, 9, 255, 8, 8, 8, 255, 7, 7, 7, 50);
  const paletteRows = Uint8Array.of(1, 2, 3, 0);
  const rows = meshRows({ ...square, paletteRows }, [0, 0, 0], palette);
  const shape = (faces: ArrayLike<number>, points: ArrayLike<number>) =>
    [...Array(faces.length / 3).keys()].map((i) => {
      const corners = [0, 1, 2].map((k) => [0, 1, 2].map((a) => points[3 * faces[3 * i + k] + a]).join());
      return [0, 1, 2].map((k) => [...corners.slice(k), ...corners.slice(0, k)].join(" ")).sort()[0];
    });
  assert.deepEqual(shape(rows.faces, rows.points).sort(), shape(square.faces, square.vertices).sort());
  const rowOf = (vertex: number) => rows.objects[OWNER * rows.owners[vertex] + 3];
  const drawn = [0, 1, 2, 3].map((i) => [...rows.faces.subarray(3 * i, 3 * i + 3)].map(rowOf));
  assert.deepEqual(drawn.map(([, , last]) => last).sort(), [0, 1, 2, 3]);
  for (const corners of drawn) assert.equal(new Set(corners.map((row) => row === 3)).size, 1);
  assert.equal(rows.points.length / 3, 4 + 3); // only the translucent triangle needs vertices of its own
});
