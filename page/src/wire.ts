/** Binary frames: u32 length of a JSON header, the header, typed arrays at multiples of 8 after it. */

import type { Numbers } from "./types.ts";

/** JSON as a header may contain it. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export interface Frame {
  kind: string;
  header: { [name: string]: Json };
  arrays: Map<string, Numbers>;
}

interface ArrayType {
  BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, offset: number, length: number): Numbers;
}

const TYPES: Record<string, ArrayType> = {
  f8: Float64Array,
  f4: Float32Array,
  u4: Uint32Array,
  i4: Int32Array,
  u2: Uint16Array,
  u1: Uint8Array,
};

/** Returns the frame that fills part of a buffer; its arrays are views of that buffer where aligned. */
export function decodeFrame(buffer: ArrayBuffer, start = 0, end = buffer.byteLength): Frame {
  if (end - start < 4) throw new Error(`a frame has at least 4 bytes; got ${end - start}`);
  const body = start + 4 + new DataView(buffer).getUint32(start, true);
  if (body > end) throw new Error(`the header of a frame ends ${body - end} bytes after the frame`);
  const header: unknown = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start + 4, body - start - 4)));
  if (!isObject(header) || typeof header.kind !== "string") throw new Error("the header of a frame has no kind");
  const arrays = new Map<string, Numbers>();
  for (const row of asList(header.arrays ?? [])) {
    const [name, type, shape, offset] = asList(row);
    arrays.set(String(name), decodeArray(buffer, end, String(type), asList(shape), body + Number(offset)));
  }
  return { kind: header.kind, header, arrays };
}

function decodeArray(buffer: ArrayBuffer, end: number, dtype: string, shape: Json[], offset: number): Numbers {
  const type = TYPES[dtype];
  if (type === undefined) throw new Error(`arrays of a frame are ${Object.keys(TYPES).join(", ")}; got ${dtype}`);
  const length = shape.reduce<number>((product, size) => product * Number(size), 1);
  const bytes = length * type.BYTES_PER_ELEMENT;
  if (!(offset >= 0 && bytes >= 0 && offset + bytes <= end)) throw new Error("an array reaches past its frame");
  if (offset % type.BYTES_PER_ELEMENT === 0) return new type(buffer, offset, length);
  return new type(buffer.slice(offset, offset + bytes), 0, length);
}

/** Returns the frames in a buffer, each preceded by its u64 length. */
export function decodeFrames(buffer: ArrayBuffer): Frame[] {
  const view = new DataView(buffer);
  const frames: Frame[] = [];
  for (let start = 0; start < buffer.byteLength; ) {
    const end = start + 8 + Number(view.getBigUint64(start, true));
    if (end > buffer.byteLength) throw new Error("the last frame is cut off");
    frames.push(decodeFrame(buffer, start + 8, end));
    start = end;
  }
  return frames;
}

/** Returns the frames of a saved page: base64 of gzip of `decodeFrames`' bytes. */
export async function decodeSaved(base64: string): Promise<Frame[]> {
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return decodeFrames(await new Response(stream).arrayBuffer());
}

/** Returns whether JSON is an object, not a list. */
export function isObject(value: unknown): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a list of JSON; throws if it is none. */
export function asList(value: Json | undefined): Json[] {
  if (!Array.isArray(value)) throw new Error(`a frame needs a list; got ${JSON.stringify(value)}`);
  return value;
}
