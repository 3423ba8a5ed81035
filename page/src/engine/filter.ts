/**
 * The float64 test of boxes, which no hit fails: what passes is a candidate, which integers decide.
 *
 * A computed time (p - o) / d has two roundings: it is within 2.1 u of the exact one, u = 2**-53, and 2**-1075 where it
 * underflows. An overflow makes it infinite, its margin too, and comparisons with infinity minus infinity reject nothing.
 */

import type { Ray } from "../types.ts";

/** Eight u. */
const TIME_MARGIN = 2 ** -50;
const TINY = 2 ** -1000;

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
