/** Binary frames: u32 length of a JSON header, the header, typed arrays at multiples of 8 after it. */

import type { FrameHeader } from "./schema.ts";
import type { Numbers } from "./types.ts";

export interface Frame {
  kind: string;
  header: FrameHeader;
  arrays: Map<string, Numbers>;
}

interface ArrayType {
  BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer, offset: number, length: number): Numbers;
}

/** Where an array is: its place is that after the header. */
type ArrayRow = [name: string, type: string, shape: number[], offset: number];

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
  const text = new TextDecoder().decode(new Uint8Array(buffer, start + 4, body - start - 4));
  const header = JSON.parse(text) as FrameHeader & { arrays: ArrayRow[] };
  if (typeof header?.kind !== "string") throw new Error("the header of a frame has no kind");
  const arrays = header.arrays.map(([name, type, shape, offset]): [string, Numbers] => [
    name,
    decodeArray(buffer, end, type, shape, body + offset),
  ]);
  return { kind: header.kind, header, arrays: new Map(arrays) };
}

function decodeArray(buffer: ArrayBuffer, end: number, dtype: string, shape: number[], offset: number): Numbers {
  const type = TYPES[dtype];
  if (type === undefined) throw new Error(`arrays of a frame are ${Object.keys(TYPES).join(", ")}; got ${dtype}`);
  const length = shape.reduce((product, size) => product * size, 1);
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
  return decodeFrames((await through(packed, new DecompressionStream("gzip"))).buffer);
}

/** Returns bytes as a stream compresses or inflates them. */
export async function through(bytes: Uint8Array, stream: CompressionStream | DecompressionStream) {
  const piped = new Blob([bytes as BlobPart]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}
