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
  if (unit === "m") return "metres";
  return unit ? `distance, ${unit}` : "distance";
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

/** Controls, and what turns the direction of a text: a name could look like another. */
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text of a file as it is shown: characters that do not show are their codes. */
export function harmless(text: string): string {
  return text.replace(UNSEEN, (letter) => `⟨U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

/** A word of a label as rows show it: one without letters has a place, too. */
export function wordText(word: string): string {
  return word.trim() ? word : "(empty)";
}

/** A name that is safe for a file. */
export function fileName(title: string, ending: string): string {
  const stem = title.replace(/\.[A-Za-z0-9]{1,8}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "-");
  return `${stem.replace(/^[-.]+|-+$/g, "") || "raybox"}.${ending}`;
}
