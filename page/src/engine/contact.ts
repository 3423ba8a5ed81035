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
  /** The time at which the line crosses a finite plane of an axis on which it moves. */
  time(axis: number, plane: number): Time;
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

  time(axis: number, plane: number): Time {
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
    const near = timeOrInfinity(line, axis, sign > 0 ? low : high, BEFORE_ALL);
    const far = timeOrInfinity(line, axis, sign > 0 ? high : low, AFTER_ALL);
    if (isBefore(enter, near)) enter = near;
    if (isBefore(far, leave)) leave = far;
  }
  return contactOf(range, enter, leave);
}

function timeOrInfinity(line: Line, axis: number, plane: number, infinity: Time): Time {
  return Number.isFinite(plane) ? line.time(axis, plane) : infinity;
}

/** Returns the contact of a line that is inside from enter to leave; null if none of that is in the range. */
export function contactOf(range: Range, enter: Time, leave: Time): Contact | null {
  if (isBefore(leave, enter) || isBefore(range.end, enter) || isBefore(leave, range.start)) return null;
  return { first: isBefore(enter, range.start) ? range.start : enter, enter, leave };
}

/** The exact time of a hit of a triangle, and the weights of its second and third corner times det. */
export interface TriangleContact {
  time: Time;
  u: bigint;
  v: bigint;
  det: bigint;
}

/**
 * Returns the contact of a closed triangle, of nine coordinates; null for a miss.
 *
 * A line parallel to the triangle's plane and a triangle without area are misses. Möller and Trumbore 1997, equation 6.
 */
export function triangleContact(line: Line, range: Range, corners: readonly number[]): TriangleContact | null {
  const { origin, direction, points } = line.integers(corners);
  const toB = minus(points[1], points[0]);
  const toC = minus(points[2], points[0]);
  const from = minus(origin, points[0]);
  const across = cross(direction, toC);
  const around = cross(from, toB);
  const signed = dot(toB, across);
  if (signed === 0n) return null;
  const sign = signed > 0n ? 1n : -1n;
  const det = sign * signed;
  const u = sign * dot(from, across);
  const v = sign * dot(direction, around);
  if (u < 0n || v < 0n || u + v > det) return null;
  const time = Time.of(ratio(sign * dot(toC, around), det));
  return isBefore(time, range.start) || isBefore(range.end, time) ? null : { time, u, v, det };
}
