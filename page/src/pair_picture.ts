/** Pictures of one ray and one primitive, as shapes: the slabs of a box on the axis of t, a triangle in its plane. */

import type { BoxPair, TrianglePair } from "./engine/pair.ts";
import { earlier, isBefore, later, type Time } from "./engine/time.ts";
import { weightsOf } from "./explanation.ts";
import { short } from "./format.ts";
import { BEHIND, HIT, MISS, PLAIN } from "./look.ts";
import type { Ray } from "./types.ts";

export type Shape =
  | { kind: "line"; x1: number; y1: number; x2: number; y2: number; colour?: string; dashed?: boolean; width?: number }
  | { kind: "bar"; x: number; y: number; width: number; height: number; colour: string }
  | { kind: "dot"; x: number; y: number; colour: string }
  | { kind: "polygon"; points: [number, number][]; colour: string }
  | { kind: "text"; x: number; y: number; text: string; anchor: "start" | "middle" | "end" };

export interface Picture {
  width: number;
  height: number;
  title: string;
  shapes: Shape[];
}

const WIDTH = 320;
const LEFT = 34;
const RIGHT = 312;
const ROW = 32;
const BAR = 10;

/** Maps t to the picture; what is infinite ends at its border. */
type Scale = (t: number) => number;

/** Returns the interval of t between the planes of each axis, what all share, and the range of the ray. */
export function slabPicture(pair: BoxPair, ray: Ray): Picture {
  const { enter, leave } = sharedTimes(pair);
  const scale = scaleOf(pair, ray, enter?.value ?? NaN, leave?.value ?? NaN);
  const inside = pair.slabs.every((slab) => slab.inside);
  const shared = inside && (enter === null || leave === null || !isBefore(leave, enter));
  const colour = pair.contact === null ? MISS : HIT;
  const axes = pair.slabs.flatMap(({ times, inside: between }, k) => {
    if (times !== null) return interval("xyz"[k], k, scale, times.near.value, times.far.value, PLAIN);
    return between ? interval("xyz"[k], k, scale, -Infinity, Infinity, PLAIN) : empty("xyz"[k], k, "parallel, not between");
  });
  const both = shared
    ? interval("box", 3, scale, enter?.value ?? -Infinity, leave?.value ?? Infinity, colour)
    : empty("box", 3, "no t that all share");
  const marks = [enter, leave].flatMap((time) => (time && inside ? mark(scale(time.value)) : []));
  const shapes = [...marks, ...axes, ...both, ...range(pair, ray, scale)];
  return picture(5 * ROW + 6, "t between the planes of each axis", shapes);
}

/** Returns the last time at which the line enters the planes of an axis, and the first at which it leaves some. */
function sharedTimes({ slabs }: BoxPair): { enter: Time | null; leave: Time | null } {
  const times = slabs.flatMap((slab) => slab.times ?? []);
  if (times.length === 0) return { enter: null, leave: null };
  return { enter: times.map(({ near }) => near).reduce(later), leave: times.map(({ far }) => far).reduce(earlier) };
}

/** Shows the times around those that all axes share, and the ray's range where the box is outside of it. */
function scaleOf({ slabs, contact }: BoxPair, ray: Ray, enter: number, leave: number): Scale {
  const isNear = (t: number) => Math.abs(t - enter) <= 2.5 * Math.abs(leave - enter);
  const ends = slabs.flatMap(({ times }) => (times === null ? [] : [times.near.value, times.far.value]));
  const range = contact === null && !(enter > leave) ? [ray.tMin, ray.tMax] : [];
  const times = [enter, leave, ...ends.filter(isNear), ...range, contact?.first.value ?? NaN];
  const finite = times.filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const pad = high > low ? 0.3 * (high - low) : 1;
  const [begin, end] = finite.length === 0 ? [-1, 1] : [low - pad, high + pad];
  return (t) => LEFT + (RIGHT - LEFT) * Math.min(1, Math.max(0, (t - begin) / (end - begin)));
}

function middle(row: number): number {
  return ROW * row + 14;
}

function interval(name: string, row: number, scale: Scale, near: number, far: number, colour: string): Shape[] {
  const [x, end] = near <= far ? [scale(near), scale(far)] : [scale(far), scale(near)];
  const bar: Shape = { kind: "bar", x, y: middle(row) - BAR / 2, width: Math.max(1.5, end - x), height: BAR, colour };
  return [label(name, row), bar, ...ends(row, x, end, [short(near), short(far)])];
}

/** The numbers below a bar: outside of its ends, apart from each other, and within the picture. */
function ends(row: number, x: number, end: number, [near, far]: [string, string]): Shape[] {
  const y = middle(row) + BAR / 2 + 12;
  const width = 6.6 * (near.length + far.length + 2);
  if (near === far) return [{ kind: "text", x: clamp(x, 3.4 * near.length), y, text: near, anchor: "middle" }];
  const left = clamp(x - 3.4 * near.length - 3, 3.4 * near.length);
  const right = clamp(end + 3.4 * far.length + 3, 3.4 * far.length);
  if (right - left >= width / 2) {
    return [
      { kind: "text", x: left, y, text: near, anchor: "middle" },
      { kind: "text", x: right, y, text: far, anchor: "middle" },
    ];
  }
  return [{ kind: "text", x: clamp((x + end) / 2, width / 2), y, text: `${near} – ${far}`, anchor: "middle" }];
}

function clamp(x: number, half: number): number {
  return Math.min(WIDTH - half - 2, Math.max(LEFT + half - 10, x));
}

function label(text: string, row: number): Shape {
  return { kind: "text", x: 4, y: middle(row) + 4, text, anchor: "start" };
}

function empty(name: string, row: number, text: string): Shape[] {
  return [label(name, row), { kind: "text", x: (LEFT + RIGHT) / 2, y: middle(row) + 4, text, anchor: "middle" }];
}

function mark(x: number): Shape {
  return { kind: "line", x1: x, y1: 4, x2: x, y2: middle(4) + 4, dashed: true };
}

/** The range of the ray, and its first contact. */
function range({ contact }: BoxPair, ray: Ray, scale: Scale): Shape[] {
  const y = middle(4);
  const [x1, x2] = [scale(ray.tMin), scale(ray.tMax)];
  const line: Shape = { kind: "line", x1, y1: y, x2, y2: y, colour: BEHIND, width: 3 };
  const found: Shape[] = [label("ray", 4), line, ...ends(4, x1, x2, [short(ray.tMin), short(ray.tMax)])];
  if (contact !== null) found.push({ kind: "dot", x: scale(contact.first.value), y, colour: HIT });
  return found;
}

type Text = Extract<Shape, { kind: "text" }>;
const TEXT_HEIGHT = 13;
const LETTER = 6.8;

/** Returns a picture in which no text is printed over another: the later one is lower. */
function picture(height: number, title: string, shapes: Shape[]): Picture {
  const placed: Text[] = [];
  const apart = shapes.map((shape) => {
    if (shape.kind !== "text") return shape;
    let text = shape;
    while (placed.some((one) => isOver(one, text))) text = { ...text, y: text.y + TEXT_HEIGHT };
    placed.push(text);
    return text;
  });
  return { width: WIDTH, height: Math.max(height, ...placed.map(({ y }) => y + 5)), title, shapes: apart };
}

/** Whether two texts have a place in common. */
export function isOver(a: Text, b: Text): boolean {
  const left = ({ anchor, text, x }: Text) => x - { start: 0, middle: 0.5, end: 1 }[anchor] * LETTER * text.length;
  const isBeside = left(a) + LETTER * a.text.length <= left(b) || left(b) + LETTER * b.text.length <= left(a);
  return !isBeside && Math.abs(a.y - b.y) < TEXT_HEIGHT;
}

const HEIGHT = 200;
const MARGIN = 30;

/** Returns a triangle in its plane, and where the line crosses that plane. */
export function trianglePicture({ corners, crossing, hit }: TrianglePair): Picture {
  const plane = flattened(corners);
  const weights = crossing === null ? null : weightsOf(crossing);
  const crossed = weights === null ? null : pointOf(plane, weights);
  const all = crossed === null ? plane : [...plane, crossed];
  const fit = fitted(all);
  const points = plane.map(fit.map);
  const shapes: Shape[] = [{ kind: "polygon", points, colour: PLAIN }];
  if (crossed !== null && weights !== null) {
    const [x, y] = fit.map(crossed);
    for (const [x2, y2] of points) shapes.push({ kind: "line", x1: x, y1: y, x2, y2, dashed: true });
    shapes.push({ kind: "dot", x, y, colour: hit ? HIT : MISS });
  }
  points.forEach((point, k) => shapes.push(corner(point, fit.height, "ABC"[k], weights?.[k])));
  return picture(fit.height, "where the line crosses the triangle's plane", shapes);
}

type Point = [number, number];

/** Returns A, B and C in their plane: A at the origin, B on the first axis. */
function flattened(corners: number[]): Point[] {
  const from = (k: number) => [0, 1, 2].map((axis) => corners[3 * k + axis] - corners[axis]);
  const [b, c] = [from(1), from(2)];
  const along = Math.hypot(...b);
  const x = along === 0 ? 0 : (b[0] * c[0] + b[1] * c[1] + b[2] * c[2]) / along;
  return [[0, 0], [along, 0], [x, Math.sqrt(Math.max(0, Math.hypot(...c) ** 2 - x * x))]];
}

/** Returns a point from its weights; one that is far outside is drawn nearer. */
function pointOf(plane: Point[], [, u, v]: [number, number, number]): Point {
  const size = Math.max(1, Math.abs(u) / 2, Math.abs(v) / 2);
  const at = (axis: 0 | 1) => (u / size) * plane[1][axis] + (v / size) * plane[2][axis];
  return [at(0), at(1)];
}

interface Fit {
  height: number;
  map: (point: Point) => Point;
}

/** Returns how points are drawn: as large as the width and the greatest height allow. */
function fitted(points: Point[]): Fit {
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [left, bottom] = [Math.min(...xs), Math.min(...ys)];
  const [width, height] = [Math.max(...xs) - left, Math.max(...ys) - bottom];
  const scale = Math.min((WIDTH - 2 * MARGIN) / (width || 1), (HEIGHT - 2 * MARGIN) / (height || 1));
  const [x0, y0] = [(WIDTH - scale * width) / 2, scale * height + MARGIN];
  return { height: scale * height + 2 * MARGIN, map: ([x, y]) => [x0 + scale * (x - left), y0 - scale * (y - bottom)] };
}

function corner([x, y]: Point, height: number, name: string, weight: number | undefined): Shape {
  const text = weight === undefined ? name : `${name} ${short(weight)}`;
  const half = 3.4 * text.length;
  const below = y > height / 2 ? 18 : -9;
  return { kind: "text", x: Math.min(WIDTH - half, Math.max(half, x)), y: y + below, text, anchor: "middle" };
}
