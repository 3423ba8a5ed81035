import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

import { decodeFrame, decodeFrames, decodeSaved } from "../src/wire.ts";
import { encodeFrame, joinFrames } from "./frames.ts";

const ARRAYS = {
  a: Float64Array.of(1.5, -0, Infinity),
  b: Uint8Array.of(1, 2, 3),
  c: Uint32Array.of(7),
  d: Uint16Array.of(1, 65535),
  e: Int32Array.of(-1),
  f: Float32Array.of(0.5),
};

test("arrays of every type come back", () => {
  const frame = decodeFrame(encodeFrame("table", { total: 3, title: "Höhe ∞" }, ARRAYS));
  assert.equal(frame.kind, "table");
  assert.equal((frame.header as unknown as { title: string }).title, "Höhe ∞");
  for (const [name, values] of Object.entries(ARRAYS)) assert.deepEqual(frame.arrays.get(name), values);
});

test("arrays are views of the message where they are aligned, else copies", () => {
  const bytes = encodeFrame("table", {}, ARRAYS);
  assert.equal(decodeFrame(bytes).arrays.get("a")!.buffer, bytes);
  const moved = new Uint8Array(bytes.byteLength + 1);
  moved.set(new Uint8Array(bytes), 1);
  assert.deepEqual(decodeFrame(moved.buffer, 1).arrays.get("a"), ARRAYS.a);
});

test("several frames follow each other, also compressed in a page", async () => {
  const joined = joinFrames([encodeFrame("scene", {}, ARRAYS), encodeFrame("rays", { total: 0 }), encodeFrame("table", {}, ARRAYS)]);
  const kinds = ["scene", "rays", "table"];
  assert.deepEqual(decodeFrames(joined).map((frame) => frame.kind), kinds);
  const text = gzipSync(new Uint8Array(joined)).toString("base64");
  const saved = await decodeSaved(`\n${text}\n`);
  assert.deepEqual(saved.map((frame) => frame.kind), kinds);
  assert.deepEqual(saved[2].arrays.get("a"), ARRAYS.a);
});

test("bytes that are no frame are refused", () => {
  const bytes = encodeFrame("table", {}, ARRAYS);
  assert.throws(() => decodeFrame(bytes.slice(0, 3)), /at least 4 bytes/);
  assert.throws(() => decodeFrame(bytes.slice(0, 20)), /header of a frame ends/);
  assert.throws(() => decodeFrame(bytes.slice(0, bytes.byteLength - 8)), /past its frame/);
  assert.throws(() => decodeFrames(joinFrames([bytes]).slice(0, 40)), /cut off/);
  assert.throws(() => decodeFrame(encodeFrame("x", { kind: 3 })), /no kind/);
});
