/** Arithmetic of three numbers, in float64. */

import type { Axis, Vec3 } from "../types.ts";

export const AXES: readonly Axis[] = ["x", "y", "z"];

export const add = (a: Vec3, b: Vec3): Vec3 => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const sub = (a: Vec3, b: Vec3): Vec3 => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a: Vec3, s: number): Vec3 => [a[0] * s, a[1] * s, a[2] * s];
export const dot = (a: Vec3, b: Vec3): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const length = (a: Vec3): number => Math.hypot(a[0], a[1], a[2]);

/** Returns a + s b. */
export const along = (a: Vec3, b: Vec3, s: number): Vec3 => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];

export const cross = (a: Vec3, b: Vec3): Vec3 => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];

/** Returns the vector of length 1 in the direction of `a`; x where `a` has no length. */
export function unit(a: Vec3): Vec3 {
  const size = length(a);
  return size > 0 && Number.isFinite(size) ? scale(a, 1 / size) : [1, 0, 0];
}

/** Returns the vector of length 1 along an axis. */
export function axisVector(axis: Axis): Vec3 {
  return AXES.map((name) => (name === axis ? 1 : 0)) as Vec3;
}

/** Returns `a` turned about a line through the origin, by Rodrigues' formula. */
export function rotate(a: Vec3, line: Vec3, angle: number): Vec3 {
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return along(along(scale(a, c), cross(line, a), s), line, dot(line, a) * (1 - c));
}

/** A box, as its two corners. */
export interface Bounds {
  lower: Vec3;
  upper: Vec3;
}

export const emptyBounds = (): Bounds => ({
  lower: [Infinity, Infinity, Infinity],
  upper: [-Infinity, -Infinity, -Infinity],
});

/** Widens bounds by a point; numbers that are not finite change nothing. */
export function include(bounds: Bounds, x: number, y: number, z: number): void {
  const point = [x, y, z];
  for (let a = 0; a < 3; a++) {
    if (!Number.isFinite(point[a])) continue;
    if (point[a] < bounds.lower[a]) bounds.lower[a] = point[a];
    if (point[a] > bounds.upper[a]) bounds.upper[a] = point[a];
  }
}

export const isEmpty = (bounds: Bounds): boolean => bounds.lower.some((low, a) => !(low <= bounds.upper[a]));
export const middle = (bounds: Bounds): Vec3 => scale(add(bounds.lower, bounds.upper), 0.5);
export const diagonal = (bounds: Bounds): number => length(sub(bounds.upper, bounds.lower));

/** Returns the eight corners of bounds. */
export function corners(bounds: Bounds): Vec3[] {
  const ends = [bounds.lower, bounds.upper];
  return Array.from({ length: 8 }, (_, k) => [ends[k & 1][0], ends[(k >> 1) & 1][1], ends[k >> 2][2]]);
}

/** Returns the bounds of points that are relative to another. */
export function boundsOf(points: Float32Array | Float64Array, shift: Vec3): Bounds {
  const bounds = emptyBounds();
  for (let i = 0; i < points.length; i += 3) {
    include(bounds, points[i] + shift[0], points[i + 1] + shift[1], points[i + 2] + shift[2]);
  }
  return bounds;
}
