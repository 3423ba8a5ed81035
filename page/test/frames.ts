/** Frames for tests, encoded as the server encodes them. */

import type { Numbers } from "../src/types.ts";

const DTYPES: Record<string, string> = {
  Float64Array: "f8",
  Float32Array: "f4",
  Uint32Array: "u4",
  Int32Array: "i4",
  Uint16Array: "u2",
  Uint8Array: "u1",
};

const HEADERS: Record<string, object> = {
  scene: { name: "", credit: "", unit: "", up: "z", follow: [], geometries: [], labels: [], ids: null },
  rays: { colors: [] },
  points: { fields: [], colors: [] },
};

/** Returns the bytes of a frame; arrays are rows of numbers without a shape. */
export function encodeFrame(kind: string, header: object = {}, arrays: Record<string, Numbers> = {}): ArrayBuffer {
  const table: [string, string, number[], number][] = [];
  let size = 0;
  for (const [name, values] of Object.entries(arrays)) {
    table.push([name, DTYPES[values.constructor.name], [values.length], size]);
    size += Math.ceil(values.byteLength / 8) * 8;
  }
  let text = JSON.stringify({ kind, ...HEADERS[kind], ...header, arrays: table });
  while ((4 + new TextEncoder().encode(text).length) % 8 !== 0) text += " ";
  const head = new TextEncoder().encode(text);
  const bytes = new Uint8Array(4 + head.length + size);
  new DataView(bytes.buffer).setUint32(0, head.length, true);
  bytes.set(head, 4);
  Object.values(arrays).forEach((values, k) => {
    const [, , , offset] = table[k];
    bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 4 + head.length + offset);
  });
  return bytes.buffer;
}

/** Returns frames in one buffer, each after its length. */
export function joinFrames(frames: ArrayBuffer[]): ArrayBuffer {
  const bytes = new Uint8Array(frames.reduce((size, frame) => size + 8 + frame.byteLength, 0));
  let start = 0;
  for (const frame of frames) {
    new DataView(bytes.buffer).setBigUint64(start, BigInt(frame.byteLength), true);
    bytes.set(new Uint8Array(frame), start + 8);
    start += 8 + frame.byteLength;
  }
  return bytes.buffer;
}

/** Returns the scene frame of one box, two labels, and more header fields. */
export function boxScene(header: object = {}): ArrayBuffer {
  const geometries = [{ type: "boxes", firstObject: 0, objects: 1, primitives: 1 }];
  const labels = [
    { name: "type", words: ["wall"] },
    { name: "height", words: null },
  ];
  const arrays = {
    "0.lower": Float64Array.of(1, 1, 1),
    "0.upper": Float64Array.of(2, 2, 2),
    "label.0": Uint32Array.of(0),
    "label.1": Float64Array.of(2.5),
  };
  const fields = { name: "one", credit: "" };
  return encodeFrame("scene", { ...fields, geometries, labels, ids: ["a"], ...header }, arrays);
}
