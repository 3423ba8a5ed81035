/** Numbers and points as text: short ones to read, exact ones to copy. */

import type { SceneModel, Vec3 } from "./types.ts";

/** A count with thousands separators. */
export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** From here on numbers are written with exponents. */
const LARGE = 1e9;

/** Six significant digits; a dash where there is no number. */
export function short(value: number): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "-∞";
  if (Math.abs(value) >= LARGE) return value.toExponential(3);
  return String(Number(value.toPrecision(6)));
}

/** The title of a column of distances. */
export function distanceTitle({ unit }: SceneModel): string {
  return unit === "m" ? "metres" : "distance";
}

/** All digits, so that what is copied is the same number. */
export function exact(point: Vec3): string {
  return point.map(String).join(", ");
}

export function shortPoint(point: Vec3): string {
  return `(${point.map(short).join(", ")})`;
}

/** Three numbers from text, separated by commas or spaces; null if there are not three. */
export function parsePoint(text: string): Vec3 | null {
  const parts = text
    .replace(/[()[\]]/g, " ")
    .trim()
    .split(/[\s,;]+/);
  const numbers = parts.map(Number);
  if (parts.length !== 3 || parts.includes("") || !numbers.every(Number.isFinite)) return null;
  return numbers as Vec3;
}

/** A name that is safe for a file. */
export function fileName(title: string, ending: string): string {
  const stem = title.replace(/\.[A-Za-z0-9]{1,8}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "-");
  return `${stem.replace(/^[-.]+|-+$/g, "") || "raybox"}.${ending}`;
}
