/** Sets of objects: as ranges in the state, as one byte an object where they are used. */

import { labelOf } from "./labels.ts";
import type { SceneModel } from "./types.ts";

/** Ranges [first, last, first, last, …] of the objects whose byte is not 0. */
export function toRanges(bytes: Uint8Array): number[] {
  const ranges: number[] = [];
  for (let object = 0; object < bytes.length; object++) {
    if (!bytes[object]) continue;
    const first = object;
    while (object + 1 < bytes.length && bytes[object + 1]) object++;
    ranges.push(first, object);
  }
  return ranges;
}

/** One byte an object, 1 inside the ranges; what lies past the last object is left out. */
export function fromRanges(ranges: readonly number[], objects: number): Uint8Array {
  const bytes = new Uint8Array(objects);
  for (let at = 0; at + 1 < ranges.length; at += 2) bytes.fill(1, ranges[at], Math.min(ranges[at + 1] + 1, objects));
  return bytes;
}

export interface Filters {
  hidden: number[];
  unpickable: number[];
  ranges: Record<string, [number, number]>;
}

/** What is drawn and what rays can hit: one byte an object. */
export interface Visibility {
  hidden: Uint8Array;
  unpickable: Uint8Array;
  shown: Uint8Array;
  pickable: Uint8Array;
  shownCount: number;
}

export function visibilityOf(model: SceneModel, filters: Filters): Visibility {
  const hidden = fromRanges(filters.hidden, model.objects);
  const unpickable = fromRanges(filters.unpickable, model.objects);
  const shown = hidden.map((byte) => byte ^ 1);
  for (const [name, range] of Object.entries(filters.ranges)) keepRange(model, name, range, shown);
  const pickable = shown.map((byte, object) => byte & (unpickable[object] ^ 1));
  return { hidden, unpickable, shown, pickable, shownCount: shown.reduce((sum, byte) => sum + byte, 0) };
}

/** Hide what has no value inside the range: as comparisons do, no value is outside. */
function keepRange(model: SceneModel, name: string, [low, high]: [number, number], shown: Uint8Array): void {
  const label = labelOf(model, name);
  if (label?.kind !== "number") return;
  const { values } = label;
  for (let object = 0; object < shown.length; object++) {
    if (!(values[object] >= low && values[object] <= high)) shown[object] = 0;
  }
}
