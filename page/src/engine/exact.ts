/** Exact numbers: float64 as integers over powers of two, ratios of integers, and their one rounding. */

/** n / d with d >= 0; ±1 / 0 are the two infinities. */
export interface Ratio {
  readonly n: bigint;
  readonly d: bigint;
}

const bits = new Uint32Array(2);
const float = new Float64Array(bits.buffer);

/** An integer and an exponent whose product m * 2**e is a float64. */
interface Parts {
  m: number;
  e: number;
}

/** Returns a finite float64 as an integer below 2**53 times a power of two. */
function parts(x: number): Parts {
  if (Number.isSafeInteger(x)) return { m: x, e: 0 };
  float[0] = x;
  const biased = (bits[1] >>> 20) & 0x7ff;
  const fraction = (bits[1] & 0xfffff) * 2 ** 32 + bits[0];
  const m = biased === 0 ? fraction : fraction + 2 ** 52;
  return { m: x < 0 ? -m : m, e: Math.max(biased, 1) - 1075 };
}

/** Integers and one power of two: values[i] = integers[i] / 2**shift. */
export interface Whole {
  integers: bigint[];
  shift: bigint;
}

/** Returns finite float64 as integers over one power of two, at least 1. */
export function whole(values: readonly number[]): Whole {
  const split = values.map(parts);
  const least = split.reduce((e, one) => Math.min(e, one.e), 0);
  return { integers: split.map(({ m, e }) => BigInt(m) << BigInt(e - least)), shift: BigInt(-least) };
}

/** Returns the same ratio with a positive denominator; d is not 0. */
export function ratio(n: bigint, d: bigint): Ratio {
  return d > 0n ? { n, d } : { n: -n, d: -d };
}

/** Returns a float64, which may be infinite, as a ratio. */
export function ratioOf(x: number): Ratio {
  if (!Number.isFinite(x)) return { n: x > 0 ? 1n : -1n, d: 0n };
  const { integers, shift } = whole([x]);
  return { n: integers[0], d: 1n << shift };
}

/** Returns a negative, zero or positive number as a is before, at or after b; the infinities are equal. */
export function compareRatios(a: Ratio, b: Ratio): number {
  const left = a.n * b.d;
  const right = b.n * a.d;
  return left < right ? -1 : left > right ? 1 : 0;
}

function bitLength(x: bigint): number {
  const hex = x.toString(16);
  return 4 * hex.length - Math.clz32(parseInt(hex[0], 16)) + 28;
}

/** Quotients below 2**-1021 are rounded to multiples of the least float64. */
const DENORMAL = -1021;

/** Returns the float64 nearest to a ratio, ties to even; ±inf where it is too large. */
export function rounded({ n, d }: Ratio): number {
  if (d === 0n) return n > 0n ? Infinity : -Infinity;
  if (n === 0n) return 0;
  const size = n < 0n ? -n : n;
  const exponent = bitLength(size) - bitLength(d); // 2**(exponent - 1) < size / d < 2**(exponent + 1)
  const quotient = exponent < DENORMAL ? roundedDenormal(size, d) : roundedNormal(size, d, exponent);
  return n < 0n ? -quotient : quotient;
}

/** Rounds by the conversion of an integer of 56 or 57 bits, the last of which is set if anything remains. */
function roundedNormal(n: bigint, d: bigint, exponent: number): number {
  const scale = exponent - 56;
  const top = scale < 0 ? n << BigInt(-scale) : n;
  const bottom = scale < 0 ? d : d << BigInt(scale);
  const quotient = top / bottom;
  const sticky = quotient * bottom === top ? quotient : quotient | 1n;
  return Number(sticky) * 2 ** -50 * 2 ** (scale + 50);
}

function roundedDenormal(n: bigint, d: bigint): number {
  const top = n << 1074n;
  const quotient = top / d;
  const twice = 2n * (top - quotient * d);
  const up = twice > d || (twice === d && (quotient & 1n) === 1n);
  return Number(up ? quotient + 1n : quotient) * 2 ** -1074;
}

export type Whole3 = readonly [bigint, bigint, bigint];

export function dot(a: Whole3, b: Whole3): bigint {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

export function minus(a: Whole3, b: Whole3): Whole3 {
  return [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
}

export function cross(a: Whole3, b: Whole3): Whole3 {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

/** Returns three of a list of integers as a vector. */
export function vector(integers: readonly bigint[], start: number): Whole3 {
  return [integers[start], integers[start + 1], integers[start + 2]];
}
