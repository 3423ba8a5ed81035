/**
 * Float64 tests that no hit fails, whatever is rounded: what passes is a candidate, which integers decide.
 *
 * Numbers are at most 2**300, and parts of a direction 0 or from 2**-150 to 2**150; then nothing overflows, and what
 * underflow loses is below the constants added. Outside of these limits everything is a candidate.
 */

import type { Ray } from "../types.ts";

const LARGEST = 2 ** 300;
const LONGEST = 2 ** 150;
const SHORTEST = 2 ** -150;

/** A computed time is within 2.1 units of rounding (2**-53) of the exact one; eight of them are its margin. */
const TIME_MARGIN = 2 ** -50;
const TINY = 2 ** -1000;

export function isFilterable(ray: Ray): boolean {
  return ray.origin.every((x) => Math.abs(x) <= LARGEST) && ray.direction.every(isModerate);
}

function isModerate(d: number): boolean {
  const size = Math.abs(d);
  return size === 0 || (size >= SHORTEST && size <= LONGEST);
}

/** Returns whether all finite numbers are within the limits; infinite ones are bounds without an end. */
export function areFilterable(numbers: Float64Array): boolean {
  for (const x of numbers) if (Math.abs(x) > LARGEST && Number.isFinite(x)) return false;
  return true;
}

/** Tests of one ray against boxes, in float64. */
export class SlabFilter {
  private readonly x: Slab;
  private readonly y: Slab;
  private readonly z: Slab;

  constructor(private readonly ray: Ray) {
    const [ox, oy, oz] = ray.origin;
    const [dx, dy, dz] = ray.direction;
    this.x = { o: ox, d: dx };
    this.y = { o: oy, d: dy };
    this.z = { o: oz, d: dz };
  }

  /** Returns false only if the ray misses the box. Bounds may be infinite. */
  mayHit(x0: number, y0: number, z0: number, x1: number, y1: number, z1: number): boolean {
    const { x, y, z } = this;
    if (isOutside(x, x0, x1) || isOutside(y, y0, y1) || isOutside(z, z0, z1)) return false;
    const enter = Math.max(near(x, x0, x1), near(y, y0, y1), near(z, z0, z1));
    const leave = Math.min(far(x, x0, x1), far(y, y0, y1), far(z, z0, z1));
    const before = TIME_MARGIN * Math.abs(enter) + TINY;
    const after = TIME_MARGIN * Math.abs(leave) + TINY;
    return !(enter - before > leave + after || leave + after < this.ray.tMin || enter - before > this.ray.tMax);
  }

  /** Returns the rows of boxes that may be hit. */
  rows(lower: Float64Array, upper: Float64Array): number[] {
    const found: number[] = [];
    for (let i = 0; i < lower.length; i += 3) {
      if (this.mayHit(lower[i], lower[i + 1], lower[i + 2], upper[i], upper[i + 1], upper[i + 2])) found.push(i / 3);
    }
    return found;
  }
}

/** A ray on one axis. */
interface Slab {
  o: number;
  d: number;
}

function isOutside({ o, d }: Slab, lower: number, upper: number): boolean {
  return d === 0 && (o < lower || o > upper);
}

function near({ o, d }: Slab, lower: number, upper: number): number {
  return d === 0 ? -Infinity : ((d > 0 ? lower : upper) - o) / d;
}

function far({ o, d }: Slab, lower: number, upper: number): number {
  return d === 0 ? Infinity : ((d > 0 ? upper : lower) - o) / d;
}
