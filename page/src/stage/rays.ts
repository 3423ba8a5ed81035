/** Drawn rays: where each ends on the picture, and which is near a pixel. */

import type { Answer, Hit, RaySample, Vec3 } from "../types.ts";
import { BEHIND, FIRST, HIT, MISS, rgb } from "../look.ts";
import type { Projected } from "./camera.ts";
import { rangeInBounds } from "./cut.ts";
import { along, type Bounds, diagonal, dot, length, middle, sub } from "./vec.ts";

/** The most marks on the ray that was cast. */
const MOST_MARKS = 2000;

/** Returns the t at which a ray is no longer drawn: its hit, t_max, or where it leaves the scene's bounds. */
export function endOf(origin: Vec3, direction: Vec3, tMax: number, hit: number, bounds: Bounds): number {
  if (Number.isFinite(hit)) return hit;
  const range = rangeInBounds(origin, direction, bounds);
  const past = range && range[1] > 0 ? range[1] : nearestT(origin, direction, bounds);
  return Math.min(tMax, past);
}

/** Returns the t at which a ray that misses the scene is nearest to its middle. */
function nearestT(origin: Vec3, direction: Vec3, bounds: Bounds): number {
  const size = dot(direction, direction) || 1;
  const t = dot(sub(middle(bounds), origin), direction) / size;
  return Math.max(t, (0.1 * diagonal(bounds)) / Math.sqrt(size));
}

/** Returns the drawn rays up to the t of their hits, six coordinates each, relative to a point. */
export function raySegments(sample: RaySample, times: Float64Array, bounds: Bounds, shift: Vec3): Float32Array {
  const segments = new Float32Array(6 * times.length);
  for (let i = 0; i < times.length; i++) {
    const [origin, direction] = [row(sample.origin, i), row(sample.direction, i)];
    // Without a direction, a ray is a point.
    const still = length(direction) === 0;
    const end = still ? 0 : endOf(origin, direction, sample.tMax[i], times[i], bounds);
    const start = still ? 0 : startOf(origin, direction, sample.tMin[i], end, bounds);
    segments.set(sub(along(origin, direction, start), shift), 6 * i);
    segments.set(sub(along(origin, direction, end), shift), 6 * i + 3);
  }
  return segments;
}

/** Returns t_min; of a ray without beginning, where it enters the bounds. */
function startOf(origin: Vec3, direction: Vec3, tMin: number, end: number, bounds: Bounds): number {
  const from = Number.isFinite(tMin) ? tMin : (rangeInBounds(origin, direction, bounds)?.[0] ?? 0);
  return Math.min(from, end);
}

const row = (rows: Float64Array, i: number): Vec3 => [rows[3 * i], rows[3 * i + 1], rows[3 * i + 2]];

/** A drawn line near a pixel, and how deep in the view it is there. */
export interface Near {
  index: number;
  distance: number;
  depth: number;
}

/** Returns the line whose picture is nearest to a pixel, of those in front of the eye within some pixels. */
export function nearestLine(
  segments: Float32Array,
  shown: (index: number) => boolean,
  project: (point: Vec3) => Projected,
  shift: Vec3,
  pixel: { x: number; y: number; within: number },
): Near | null {
  let best: Near | null = null;
  for (let i = 0; i < segments.length / 6; i++) {
    if (!shown(i)) continue;
    const found = nearOn(segments, i, project, shift, pixel);
    if (found && found.distance <= (best?.distance ?? pixel.within)) best = found;
  }
  return best;
}

function nearOn(
  segments: Float32Array,
  i: number,
  project: (point: Vec3) => Projected,
  shift: Vec3,
  pixel: { x: number; y: number },
): Near | null {
  const point = (at: number): Vec3 => [0, 1, 2].map((a) => segments[6 * i + at + a] + shift[a]) as Vec3;
  const ends = inFront(point(0), point(3), project);
  if (!ends) return null;
  const [a, b] = ends;
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const size = dx * dx + dy * dy;
  const s = size > 0 ? Math.min(1, Math.max(0, ((pixel.x - a.x) * dx + (pixel.y - a.y) * dy) / size)) : 0;
  const distance = Math.hypot(a.x + s * dx - pixel.x, a.y + s * dy - pixel.y);
  return { index: i, distance, depth: 1 / ((1 - s) / a.depth + s / b.depth) };
}

/** Returns the ends of the part of a segment that is in front of the eye. */
function inFront(a: Vec3, b: Vec3, project: (point: Vec3) => Projected): [Projected, Projected] | null {
  const [p, q] = [project(a), project(b)];
  const least = 1e-3 * Math.max(p.depth, q.depth);
  if (!(least > 0)) return null;
  const cut = (from: Vec3, to: Vec3, near: number, far: number) =>
    project(along(from, sub(to, from), (least - near) / (far - near)));
  if (p.depth < least) return [cut(a, b, p.depth, q.depth), q];
  if (q.depth < least) return [p, cut(b, a, q.depth, p.depth)];
  return [p, q];
}

/** The ray that was cast, as lines and marks relative to a point. */
export interface DrawnAnswer {
  segments: Float32Array;
  segmentTints: Uint8Array;
  marks: Float32Array;
  markTints: Uint8Array;
}

/** Returns the ray with a mark at t of each hit, hollow ones where it enters before and where it leaves. */
export function drawnAnswer(answer: Answer, bounds: Bounds, shift: Vec3): DrawnAnswer {
  const { origin, direction, tMin, tMax } = answer.ray;
  const at = (t: number) => sub(along(origin, direction, t), shift);
  const reach = (4 * diagonal(bounds)) / (length(direction) || 1);
  const from = Number.isFinite(tMin) ? tMin : startOf(origin, direction, tMin, 0, bounds);
  const end = Math.max(endOf(origin, direction, tMax, Infinity, bounds), from);
  const first = answer.hits.length > 0 ? Math.min(answer.hits[0].t, end) : end;
  const [solid, pale] = tintsOf(answer).map(rgb);
  // The first mark is drawn last, over the others.
  const marks = answer.hits
    .flatMap((hit, i) => marksOf(hit, i === 0, reach))
    .slice(0, MOST_MARKS)
    .reverse();
  return {
    segments: Float32Array.from([...at(from), ...at(first), ...at(first), ...at(end)]),
    segmentTints: Uint8Array.from([...solid, 255, ...pale, 150]),
    marks: Float32Array.from(marks.flatMap((mark) => at(mark.t))),
    markTints: Uint8Array.from(marks.flatMap((mark) => mark.tint)),
  };
}

/** The colours of the ray before and after its first hit; a line of sight is red if blocked, else blue. */
function tintsOf({ ends, hits }: Answer): [string, string] {
  if (ends) return hits.length > 0 ? [HIT, HIT] : [BEHIND, BEHIND];
  return hits.length > 0 ? [HIT, BEHIND] : [MISS, MISS];
}

function marksOf(hit: Hit, first: boolean, reach: number): { t: number; tint: number[] }[] {
  const colour = rgb(first ? FIRST : BEHIND);
  const hollow = [hit.tEnter, hit.tExit].filter((t) => t !== hit.t && Math.abs(t) < reach);
  return [{ t: hit.t, tint: [...colour, 255] }, ...hollow.map((t) => ({ t, tint: [...colour, 128] }))];
}
