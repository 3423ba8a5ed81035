/** Messages from the page to the server, and the answers in the server's frames. */

import { packBits } from "./model.ts";
import * as schema from "./schema.ts";
import type { Answer, Hit, Numbers, Ray } from "./types.ts";
import type { Frame } from "./wire.ts";

/** A message before it has its number. */
export type Request = Unnumbered<schema.Request>;
type Unnumbered<T> = T extends unknown ? Omit<T, "seq"> : never;

/** Bytes of a file in one message, which has one more: so few that a slow line is not silent for half a minute. */
export const UPLOAD_PART = (1 << 18) - 1;

/** Returns the fields of a ray in a message; its numbers must be finite, the ends of its range need not. */
export function rayFields(ray: Ray): schema.RayFields {
  const { origin, direction } = ray;
  if (![...origin, ...direction].every(Number.isFinite)) throw new Error("the numbers of a ray must be finite");
  return { origin, direction, t_min: finiteOrNull(ray.tMin), t_max: finiteOrNull(ray.tMax) };
}

function finiteOrNull(t: number): number | null {
  if (Number.isNaN(t)) throw new Error("an end of a ray's range is NaN");
  return Number.isFinite(t) ? t : null;
}

/** Returns the text of a message. */
export function encodeRequest(seq: number, request: Request): string {
  const { kind, ...fields } = request;
  return JSON.stringify({ kind, seq, ...fields });
}

/** Returns the message that says which objects can be hit: one bit an object. */
export function encodeMask(pickable: Uint8Array): Uint8Array {
  return withKind(schema.MASK, packBits(pickable));
}

/** Returns the message that says which objects are selected: one bit an object. */
export function encodeSelection(selection: readonly number[], objects: number): Uint8Array {
  const bytes = new Uint8Array(objects);
  for (const object of selection) bytes[object] = 1;
  return withKind(schema.SELECTION, packBits(bytes));
}

/** Returns the message with one part of an uploaded file; the last part is empty. */
export function encodePart(part: Uint8Array): Uint8Array {
  return withKind(schema.UPLOAD_PART, part);
}

/** Returns the message with one part of a picture; the last part is empty. */
export function encodePicturePart(part: Uint8Array): Uint8Array {
  return withKind(schema.PICTURE_PART, part);
}

function withKind(kind: number, content: Uint8Array): Uint8Array {
  const message = new Uint8Array(content.length + 1);
  message[0] = kind;
  message.set(content, 1);
  return message;
}

/** Returns the answer in a frame of hits. */
export function decodeAnswer(frame: Frame): Answer {
  const { origin, direction, t_min, t_max, total, row } = frame.header as schema.HitsHeader;
  const ray = { origin, direction, tMin: t_min ?? -Infinity, tMax: t_max ?? Infinity };
  const columns = ["object", "geometry", "primitive", "t", "t_enter", "t_exit"].map((name) => column(frame, name));
  const hits = Array.from(columns[0], (_, i) => hit(columns, i));
  return { ray, hits, total, row };
}

function hit(columns: Numbers[], i: number): Hit {
  const [object, geometry, primitive, t, tEnter, tExit] = columns.map((values) => values[i]);
  return { object, geometry, primitive, t, tEnter, tExit };
}

function column(frame: Frame, name: string): Numbers {
  const values = frame.arrays.get(name);
  if (values === undefined) throw new Error(`array ${name} of frame ${frame.kind} is missing`);
  return values;
}
