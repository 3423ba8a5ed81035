import assert from "node:assert/strict";
import { test } from "node:test";

import { makeModel, packBits, unpackBits, withFrame } from "../src/model.ts";
import type { GridGeometry, Numbers } from "../src/types.ts";
import { decodeFrame } from "../src/wire.ts";
import { boxScene, encodeFrame } from "./frames.ts";

test("a scene has its geometries, labels and hidden objects", () => {
  const model = makeModel([decodeFrame(boxScene({ classes: "type", hiddenAtStart: null }))]);
  assert.equal(model.objects, 1);
  assert.deepEqual(model.bounds, [[1, 1, 1], [2, 2, 2]]);
  assert.deepEqual(model.labels[0], { name: "type", kind: "class", words: ["wall"], codes: Uint16Array.of(0), missing: 0xffff });
  assert.deepEqual(model.labels[1], { name: "height", kind: "number", values: Float64Array.of(2.5) });
  assert.deepEqual([model.classes, model.names, model.hiddenAtStart, model.rays], ["type", null, null, null]);
});

test("rays and tables join the model", () => {
  const model = makeModel([decodeFrame(boxScene())]);
  const table = { t: Float64Array.of(Infinity), object: Int32Array.of(-1), length: Float64Array.of(2), primitive: Int32Array.of(-1) };
  const more = withFrame(model, decodeFrame(encodeFrame("table", { total: 1 }, table)));
  assert.deepEqual(more.table, { total: 1, t: table.t, object: table.object, length: table.length });
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
  const frame = encodeFrame("scene", { geometries, shift: [0, 0, 0], bounds: [[0, 0, 0], [2, 2, 3]] }, { ...edges, ...arrays });
  return makeModel([decodeFrame(frame)]).geometries[0] as GridGeometry;
}

test("arrays that are missing or of another type are refused", () => {
  const geometries = [{ type: "mesh", firstObject: 0, objects: 1, primitives: 1 }];
  const header = { geometries, shift: [0, 0, 0], bounds: [[0, 0, 0], [1, 1, 1]] };
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
