/** The definition of contacts: one line against one box or triangle, in integers. */

import type { Ray } from "../types.ts";
import { cross, dot, minus, ratio, vector, whole, type Whole3 } from "./exact.ts";
import { AFTER_ALL, BEFORE_ALL, isBefore, planeTime, Time } from "./time.ts";

/** The range of a ray. */
export interface Range {
  start: Time;
  end: Time;
}

/** The first contact, which orders hits, and where the whole line enters and leaves. */
export interface Contact {
  first: Time;
  enter: Time;
  leave: Time;
}

export interface Integers {
  origin: Whole3;
  direction: Whole3;
  points: Whole3[];
}

/** The line of a ray in the coordinates of a geometry. */
export interface Line {
  /** The sign of the direction on an axis. */
  sign(axis: number): number;
  /** Whether the origin is between two planes of an axis on which the line does not move. */
  isBetween(axis: number, lower: number, upper: number): boolean;
  /** The time at which the line crosses a plane, which may be infinite, of an axis on which it moves. */
  timeOf(axis: number, plane: number): Time;
  /** Ray and points, all times one positive integer. */
  integers(points: readonly number[]): Integers;
}

/** Returns whether no real t is in range. */
export function isEmpty(ray: Ray): boolean {
  return !(ray.tMin <= ray.tMax && ray.tMin < Infinity && ray.tMax > -Infinity);
}

export function rangeOf(ray: Ray): Range {
  return { start: Time.at(ray.tMin), end: Time.at(ray.tMax) };
}

/** The line of a ray in the world's coordinates. */
export class WorldLine implements Line {
  constructor(private readonly ray: Ray) {}

  sign(axis: number): number {
    return Math.sign(this.ray.direction[axis]);
  }

  isBetween(axis: number, lower: number, upper: number): boolean {
    const o = this.ray.origin[axis];
    return lower <= o && o <= upper;
  }

  timeOf(axis: number, plane: number): Time {
    if (!Number.isFinite(plane)) return this.sign(axis) * plane > 0 ? AFTER_ALL : BEFORE_ALL;
    return planeTime(plane, this.ray.origin[axis], this.ray.direction[axis]);
  }

  integers(points: readonly number[]): Integers {
    const { integers } = whole([...this.ray.origin, ...this.ray.direction, ...points]);
    return { origin: vector(integers, 0), direction: vector(integers, 3), points: vectors(integers, 6) };
  }
}

function vectors(integers: bigint[], start: number): Whole3[] {
  const found: Whole3[] = [];
  for (let k = start; k < integers.length; k += 3) found.push(vector(integers, k));
  return found;
}

/** Returns the contact of a closed box, whose bounds may be infinite; null for a miss. */
export function boxContact(line: Line, range: Range, lower: ArrayLike<number>, upper: ArrayLike<number>): Contact | null {
  let enter = BEFORE_ALL;
  let leave = AFTER_ALL;
  for (let axis = 0; axis < 3; axis++) {
    const low = lower[axis];
    const high = upper[axis];
    if (low === Infinity || high === -Infinity) return null;
    const sign = line.sign(axis);
    if (sign === 0) {
      if (!line.isBetween(axis, low, high)) return null;
      continue;
    }
    const near = line.timeOf(axis, sign > 0 ? low : high);
    const far = line.timeOf(axis, sign > 0 ? high : low);
    if (isBefore(enter, near)) enter = near;
    if (isBefore(far, leave)) leave = far;
  }
  return contactOf(range, enter, leave);
}

/** Returns the contact of a line that is inside from enter to leave; null if none of that is in the range. */
export function contactOf(range: Range, enter: Time, leave: Time): Contact | null {
  if (isBefore(leave, enter) || isBefore(range.end, enter) || isBefore(leave, range.start)) return null;
  return { first: isBefore(enter, range.start) ? range.start : enter, enter, leave };
}

/** Where a line crosses the plane of a triangle: the weights of its second and third corner are u / det, v / det. */
export class Crossing {
  constructor(
    readonly time: Time,
    readonly u: bigint,
    readonly v: bigint,
    readonly det: bigint,
  ) {}

  get isInside(): boolean {
    return this.u >= 0n && this.v >= 0n && this.u + this.v <= this.det;
  }

  /** Returns whether a ray of a range hits the triangle. */
  isIn(range: Range): boolean {
    return this.isInside && !isBefore(this.time, range.start) && !isBefore(range.end, this.time);
  }
}

/**
 * Returns where a line crosses the plane of a triangle, of nine coordinates; null for none.
 *
 * There is none of a line parallel to the plane and of a triangle without area. Möller and Trumbore 1997, equation 6.
 */
export function crossingOf(line: Line, corners: readonly number[]): Crossing | null {
  const { origin, direction, points } = line.integers(corners);
  const toB = minus(points[1], points[0]);
  const toC = minus(points[2], points[0]);
  const from = minus(origin, points[0]);
  const across = cross(direction, toC);
  const around = cross(from, toB);
  const det = dot(toB, across);
  if (det === 0n) return null;
  const sign = det > 0n ? 1n : -1n;
  const time = Time.of(ratio(dot(toC, around), det));
  return new Crossing(time, sign * dot(from, across), sign * dot(direction, around), sign * det);
}
