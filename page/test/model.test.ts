import assert from "node:assert/strict";
import { test } from "node:test";

import { makeModel, packBits, unpackBits, withFrame } from "../src/model.ts";
import { rolesOf } from "../src/roles.ts";
import type { GridGeometry, Numbers, SceneModel } from "../src/types.ts";
import { decodeFrame } from "../src/wire.ts";
import { boxScene, encodeFrame } from "./frames.ts";

test("a scene has its geometries, labels and hidden objects", () => {
  const model = makeModel([decodeFrame(boxScene())]);
  assert.equal(model.objects, 1);
  assert.deepEqual(model.bounds, [[1, 1, 1], [2, 2, 2]]);
  assert.deepEqual(model.labels[0], { name: "type", kind: "class", words: ["wall"], codes: Uint32Array.of(0) });
  assert.deepEqual(model.labels[1], { name: "height", kind: "number", values: Float64Array.of(2.5) });
  assert.deepEqual([model.classes, model.names, model.hiddenAtStart, model.rays], ["type", null, null, null]);
});

test("labels are classes, text or numbers by what they contain, and some have roles", () => {
  const words = Array.from({ length: 200 }, (_, k) => `object ${k}`);
  const every = (count: number) => Uint32Array.from({ length: 200 }, (_, k) => k % count);
  const labels = [
    { name: "ifc_class", words: ["door", "wall"] },
    { name: "name", words },
    { name: "storey", words },
    { name: "empty", words: [] },
    { name: "height", words: null },
  ];
  const codes = { "label.0": every(2), "label.1": every(200), "label.2": every(200), "label.3": every(1) };
  const arrays = { ...codes, "label.4": new Float64Array(200) };
  const frame = encodeFrame("scene", { geometries: [], labels }, arrays);
  const model = makeModel([decodeFrame(frame)]);
  assert.deepEqual(model.labels.map(({ name, kind }) => [name, kind]), [
    ["ifc_class", "class"],
    ["name", "text"],
    ["storey", "class"],
    ["height", "number"],
  ]);
  assert.deepEqual([model.names, model.classes, model.levels], ["name", "ifc_class", "storey"]);
  assert.deepEqual(rolesOf([{ name: "colour of roof", kind: "class", words: ["red", "blue"], codes: every(2) }]), {
    names: null,
    classes: "colour of roof",
    levels: null,
  });
});

test("bounds are those of all finite numbers, of any size; the shift is whole", () => {
  const [low, high] = [-Infinity, Infinity];
  for (const size of [1e-300, 1e-9, 1, 1e12, 1e308]) {
    const lower = Float64Array.of(-size, -size, -size, low, high, 0);
    const upper = Float64Array.of(size, size, size, high, high, 1);
    assert.deepEqual(boundsOf("boxes", { "0.lower": lower, "0.upper": upper }).bounds, [
      [-size, -size, -size],
      [size, size, Math.max(size, 1)],
    ]);
  }
  const corner = [84916.123, 447512.456, 3];
  const house = { "0.lower": Float64Array.from(corner), "0.upper": Float64Array.from(corner, (value) => value + 0.5) };
  assert.deepEqual(boundsOf("boxes", house).shift, [84916, 447513, 3]);
  const vertices = Float64Array.of(0, 0, 0, 1, 0, 0, 0, 1, 0, 99, 99, 99); // the last is not used
  const triangle = { "0.vertices": vertices, "0.faces": Uint32Array.of(0, 1, 2) };
  assert.deepEqual(boundsOf("mesh", triangle).bounds[1], [1, 1, 0]);
  const move = Float64Array.of(1, 0, 0, 5, 0, 2, 0, 0, 0, 0, 1, -3);
  const cube = { "0.base.lower": Float64Array.of(0, 0, 0), "0.base.upper": Float64Array.of(1, 1, 1) };
  assert.deepEqual(boundsOf("instances", { "0.transforms": move, ...cube }).bounds, [[5, 0, -3], [6, 2, -2]]);
});

test("without anything finite, bounds are zeros, or around the planes", () => {
  const everywhere = { "0.lower": new Float64Array(3).fill(-Infinity), "0.upper": new Float64Array(3).fill(Infinity) };
  assert.deepEqual(boundsOf("boxes", everywhere).bounds, [[0, 0, 0], [0, 0, 0]]);
  const planes = { "0.normals": Float64Array.of(0, 0, 2, 3, 4, 0), "0.offsets": Float64Array.of(10, 25) };
  assert.deepEqual(boundsOf("planes", planes).bounds, [[-2.5, -2.5, -2.5], [5.5, 6.5, 7.5]]);
});

function boundsOf(type: string, arrays: Record<string, Numbers>): SceneModel {
  const objects = (arrays["0.lower"]?.length ?? 3) / 3;
  const geometries = [{ type, firstObject: 0, objects, primitives: objects }];
  return makeModel([decodeFrame(encodeFrame("scene", { geometries }, arrays))]);
}

test("a saved page says which scenes it casts no rays at", () => {
  const boxes = (rows: number) => ({ "0.lower": new Float64Array(3 * rows), "0.upper": new Float64Array(3 * rows) });
  const reasonOf = (type: string, primitives: number, arrays: Record<string, Numbers>) => {
    const geometries = [{ type, firstObject: 0, objects: 1, primitives }];
    return makeModel([decodeFrame(encodeFrame("scene", { geometries }, arrays))]).offlineReason;
  };
  assert.equal(reasonOf("boxes", 100_000, boxes(100_000)), "");
  assert.match(reasonOf("boxes", 100_001, boxes(100_001)), /has 100,001 boxes and triangles, and .* 100,000 at most/);
  const base = { "0.base.lower": new Float64Array(3), "0.base.upper": new Float64Array(3) };
  assert.match(reasonOf("instances", 100_000, { "0.transforms": new Float64Array(1_200_000), ...base }), /100,001/);
  const edges = { "0.x": new Float64Array(2), "0.y": new Float64Array(2), "0.z": new Float64Array(100_002) };
  assert.equal(reasonOf("grid", 100_001, edges), "");
  assert.match(reasonOf("planes", 1, { "0.normals": new Float64Array(3), "0.offsets": new Float64Array(1) }), /planes/);
});

test("rays and tables join the model", () => {
  const model = makeModel([decodeFrame(boxScene())]);
  const table = { t: Float64Array.of(Infinity), object: Int32Array.of(-1), distance: Float64Array.of(Infinity), primitive: Int32Array.of(-1) };
  const more = withFrame(model, decodeFrame(encodeFrame("table", { total: 1 }, table)));
  assert.deepEqual(more.table, { total: 1, t: table.t, object: table.object, distance: table.distance });
  assert.equal(more.geometries, model.geometries);
});

test("objects of a grid are its occupied cells, or it is one object", () => {
  const bits = Uint8Array.of(0b10010010, 0b1);
  assert.deepEqual(gridOf(4, { "0.occupied": bits }).cells, Float64Array.of(1, 4, 7, 8));
  assert.equal(gridOf(1, { "0.occupied": bits }).cells, null);
  assert.equal(gridOf(12, {}).cells?.length, 12);
  assert.equal(gridOf(1, {}).cells, null);
});

function gridOf(objects: number, arrays: Record<string, Numbers>): GridGeometry {
  const geometries = [{ type: "grid", firstObject: 0, objects, primitives: 12 }];
  const edges = { "0.x": Float64Array.of(0, 1, 2), "0.y": Float64Array.of(0, 1, 2), "0.z": Float64Array.of(0, 1, 2, 3) };
  const frame = encodeFrame("scene", { geometries }, { ...edges, ...arrays });
  return makeModel([decodeFrame(frame)]).geometries[0] as GridGeometry;
}

test("arrays that are missing or of another type are refused", () => {
  const geometries = [{ type: "mesh", firstObject: 0, objects: 1, primitives: 1 }];
  const header = { geometries };
  const faces = { "0.faces": Uint32Array.of(0, 1, 2) };
  assert.throws(() => makeModel([decodeFrame(encodeFrame("scene", header, faces))]), /0\.vertices .* missing/);
  const wrong = { ...faces, "0.vertices": new Float32Array(9) };
  assert.throws(() => makeModel([decodeFrame(encodeFrame("scene", header, wrong))]), /must be Float64Array/);
  assert.throws(() => makeModel([]), /no frame of the scene/);
});

test("bits are packed with the lowest first", () => {
  const bytes = Uint8Array.of(1, 0, 0, 1, 0, 0, 0, 0, 255, 0);
  assert.deepEqual(packBits(bytes), Uint8Array.of(0b1001, 1));
  assert.deepEqual(unpackBits(packBits(bytes), 10), Uint8Array.of(1, 0, 0, 1, 0, 0, 0, 0, 1, 0));
});
