/** Messages from the page to the server, and the answers in the server's frames. */

import { packBits } from "./model.ts";
import type { Answer, Hit, Numbers, Ray, Vec3, ViewState } from "./types.ts";
import { asList, type Frame, type Json } from "./wire.ts";

/** The range of a ray; null stands for an infinite end, which JSON has not. */
interface RayFields {
  origin: Vec3;
  direction: Vec3;
  t_min: number | null;
  t_max: number | null;
}

export type Request =
  | ({ kind: "pick" } & RayFields)
  | { kind: "ray"; row: number }
  | { kind: "save"; state: ViewState }
  | { kind: "upload"; name: string; size: number };

/** Bytes of a file in one message, which has one more: so few that a slow line is not silent for half a minute. */
export const UPLOAD_PART = (1 << 18) - 1;

const MASK = 1;
const PART = 2;
const PICTURE = 3;

/** Returns the fields of a ray in a message; its numbers must be finite, the ends of its range need not. */
export function rayFields(ray: Ray): RayFields {
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
  return withKind(MASK, packBits(pickable));
}

/** Returns the message with one part of an uploaded file; the last part is empty. */
export function encodePart(part: Uint8Array): Uint8Array {
  return withKind(PART, part);
}

/** Returns the message with one part of a picture; the last part is empty. */
export function encodePicturePart(part: Uint8Array): Uint8Array {
  return withKind(PICTURE, part);
}

function withKind(kind: number, content: Uint8Array): Uint8Array {
  const message = new Uint8Array(content.length + 1);
  message[0] = kind;
  message.set(content, 1);
  return message;
}

/** Returns the answer in a frame of hits. */
export function decodeAnswer(frame: Frame): Answer {
  const { header } = frame;
  const columns = ["object", "geometry", "primitive", "t", "t_enter", "t_exit"].map((name) => column(frame, name));
  const hits = Array.from(columns[0], (_, i) => hit(columns, i));
  return { ray: decodeRay(header), hits, total: Number(header.total), row: numberOrNull(header.row) };
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

function decodeRay(header: Frame["header"]): Ray {
  return {
    origin: vec3(header.origin),
    direction: vec3(header.direction),
    tMin: numberOrNull(header.t_min) ?? -Infinity,
    tMax: numberOrNull(header.t_max) ?? Infinity,
  };
}

function numberOrNull(value: Json | undefined): number | null {
  return value == null ? null : Number(value);
}

function vec3(value: Json | undefined): Vec3 {
  const [x, y, z] = asList(value).map(Number);
  return [x, y, z];
}
