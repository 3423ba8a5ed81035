/** Times of a ray: exact, with their float64. */

import { compareRatios, ratio, ratioOf, rounded, whole, type Ratio } from "./exact.ts";

/** A time and its float64, rounded once; never -0. The ratio is computed when floats do not decide. */
export class Time {
  readonly value: number;
  private exact: Ratio | null = null;

  constructor(
    value: number,
    private readonly make: () => Ratio,
  ) {
    this.value = value + 0;
  }

  get ratio(): Ratio {
    return (this.exact ??= this.make());
  }

  static of(exact: Ratio): Time {
    const time = new Time(rounded(exact), () => exact);
    time.exact = exact;
    return time;
  }

  /** Returns a float64 as a time. */
  static at(t: number): Time {
    return new Time(t, () => ratioOf(t));
  }
}

export const BEFORE_ALL = Time.at(-Infinity);
export const AFTER_ALL = Time.at(Infinity);

/** Returns a negative, zero or positive number as a is before, at or after b. Rounding is monotone. */
export function compareTimes(a: Time, b: Time): number {
  if (a.value < b.value) return -1;
  if (a.value > b.value) return 1;
  return compareRatios(a.ratio, b.ratio);
}

export function isBefore(a: Time, b: Time): boolean {
  return a.value < b.value || (a.value === b.value && compareRatios(a.ratio, b.ratio) < 0);
}

export function later(a: Time, b: Time): Time {
  return isBefore(a, b) ? b : a;
}

export function earlier(a: Time, b: Time): Time {
  return isBefore(b, a) ? b : a;
}

/** Returns (plane - o) / d, for finite numbers and d not 0. */
export function planeTime(plane: number, o: number, d: number): Time {
  const difference = plane - o;
  if (isExactDifference(plane, o, difference)) {
    return new Time(difference / d, () => planeRatio(plane, o, d));
  }
  return Time.of(planeRatio(plane, o, d));
}

/** Returns whether a - b was rounded to itself (Knuth's two-sum); false after an overflow. */
function isExactDifference(a: number, b: number, difference: number): boolean {
  const minusB = difference - a;
  return a - (difference - minusB) - (b + minusB) === 0;
}

function planeRatio(plane: number, o: number, d: number): Ratio {
  const [p, q, r] = whole([plane, o, d]).integers;
  return ratio(p - q, r);
}
