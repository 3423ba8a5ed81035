/** The numbers of one ray and one primitive, exact, as text. */

import { rounded, type Ratio } from "./engine/exact.ts";
import { pairOf, type AxisSlab, type BoxPair, type Pair, type PlanePair, type TrianglePair } from "./engine/pair.ts";
import { earlier, isBefore, later, type Time } from "./engine/time.ts";
import type { Explanation, Hit, Ray, SceneModel } from "./types.ts";

/** Characters of a fraction that is shown. */
const LONGEST = 40;

/** Returns what a hit, or a miss, of a primitive follows from; of a copy, of what the ray hits first in it. */
export function explainHit(model: Pick<SceneModel, "geometries">, ray: Ray, hit: Hit): Explanation {
  return explainPair(pairOf(model, ray, hit), ray);
}

export function explainPair(pair: Pair, ray: Ray): Explanation {
  switch (pair.kind) {
    case "box":
      return explainBox(pair, ray);
    case "triangle":
      return explainTriangle(pair, ray);
    case "plane":
      return explainPlane(pair, ray);
  }
}

function explainBox(pair: BoxPair, ray: Ray): Explanation {
  const axes = pair.slabs.map((slab, k) => {
    const [near, far] = slabTexts(slab);
    return { axis: "xyz"[k], lower: number(slab.lower), upper: number(slab.upper), near, far };
  });
  return { text: `${pair.name}\n${boxReason(pair, ray)}`, axes, ...verdictOf(pair.contact?.first ?? null) };
}

/** Returns the times of a slab as text; of a parallel line all times if it is inside, none if not. */
export function slabTexts({ times, inside }: AxisSlab): [string, string] {
  if (times !== null) return [number(times.near.value), number(times.far.value)];
  return inside ? ["-inf", "inf"] : ["inf", "-inf"];
}

/** The axis whose planes are entered last or left first, with that time. */
interface Extreme {
  axis: string;
  time: Time;
}

function boxReason(pair: BoxPair, ray: Ray): string {
  const outside = pair.slabs.findIndex((slab) => !slab.inside);
  if (outside >= 0) return `The line is parallel to the planes of ${"xyz"[outside]}, and not between them.`;
  const enter = extreme(pair, "near", later);
  const leave = extreme(pair, "far", earlier);
  if (enter === null || leave === null) return "The direction is zero: the ray is one point.";
  if (isBefore(leave.time, enter.time)) {
    return `The line leaves the planes of ${leave.axis} at ${number(leave.time.value)}, before it enters those of ${enter.axis} at ${number(enter.time.value)}.`;
  }
  const where = `The line is in the box from t = ${number(enter.time.value)} (${enter.axis}) to ${number(leave.time.value)} (${leave.axis})`;
  if (pair.contact === null) return `${where}; nothing of that is from ${number(ray.tMin)} to ${number(ray.tMax)}, the ray's range.`;
  return isBefore(enter.time, pair.contact.first) ? `${where}; the ray starts inside, at ${number(ray.tMin)}.` : `${where}.`;
}

function extreme({ slabs }: BoxPair, end: "near" | "far", choose: (a: Time, b: Time) => Time): Extreme | null {
  const ends = slabs.flatMap(({ times }, k) => (times === null ? [] : [{ axis: "xyz"[k], time: times[end] }]));
  if (ends.length === 0) return null;
  return ends.reduce((a, b) => (choose(a.time, b.time) === a.time ? a : b));
}

function explainTriangle(pair: TrianglePair, ray: Ray): Explanation {
  const { crossing, hit } = pair;
  const verdict = verdictOf(hit && crossing !== null ? crossing.time : null);
  return { text: [pair.name, ...triangleReason(pair, ray)].join("\n"), axes: [], ...verdict };
}

function triangleReason({ crossing, corners, hit }: TrianglePair, ray: Ray): string[] {
  const points = ["A", "B", "C"].map((name, k) => `${name} = ${corners.slice(3 * k, 3 * k + 3).map(number).join(", ")}`);
  if (crossing === null) return [...points, "The line is parallel to the triangle's plane, or the triangle has no area."];
  const weights = weightsOf(crossing).map(number).join(", ");
  const found = [...points, `The line crosses the plane at t = ${fraction(crossing.time)}.`, `Weights of A, B, C: ${weights}`];
  if (!crossing.isInside) return [...found, "A weight below 0 is outside of the edge opposite to its corner."];
  return hit ? found : [...found, rangeText(ray)];
}

function explainPlane({ name, normal, offset, time, hit }: PlanePair, ray: Ray): Explanation {
  const texts = [name, `Its points p: (${normal.map(number).join(", ")}) · p = ${number(offset)}`];
  if (time === null) texts.push("The line is parallel to the plane.");
  else texts.push(`The line crosses the plane at t = ${fraction(time)}.`, ...(hit ? [] : [rangeText(ray)]));
  return { text: texts.join("\n"), axes: [], ...verdictOf(hit ? time : null) };
}

function rangeText({ tMin, tMax }: Ray): string {
  return `The ray's range is from ${number(tMin)} to ${number(tMax)}.`;
}

/** Returns the weights of the three corners, each rounded once. */
export function weightsOf({ u, v, det }: { u: bigint; v: bigint; det: bigint }): [number, number, number] {
  const weight = (n: bigint) => rounded({ n, d: det }) + 0;
  return [weight(det - u - v), weight(u), weight(v)];
}

function verdictOf(time: Time | null): { verdict: string; t: string } {
  return time === null ? { verdict: "miss", t: "" } : { verdict: `hit at t = ${number(time.value)}`, t: fraction(time) };
}

/** Returns an exact time as a fraction and its decimal; the decimal alone where the fraction is long. */
export function fraction(time: Time): string {
  const decimal = number(time.value);
  if (time.ratio.d === 0n) return decimal;
  const text = reduced(time.ratio);
  return text.length > LONGEST || text === decimal ? decimal : `${text} = ${decimal}`;
}

function reduced({ n, d }: Ratio): string {
  const divisor = gcd(n < 0n ? -n : n, d);
  return d === divisor ? String(n / divisor) : `${n / divisor}/${d / divisor}`;
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

/** Returns all digits of a number; infinities as Python writes them. */
export function number(x: number): string {
  if (Number.isFinite(x)) return String(x + 0);
  return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
}
