/** Sets of objects in links: a hidden class of 10⁶ objects is its word, not 10⁵ ranges. */

import { codedLabel, groupLabels, type Coded } from "./labels.ts";
import type { ObjectSet, SceneModel } from "./types.ts";
import { fromRanges, toRanges } from "./visibility.ts";

/** Sets of at most this many ends of ranges stay as they are. */
const SHORT = 40;

/** The shortest form of a set: its ranges, or words of one label and what differs from them. */
export function packSet(model: SceneModel, ranges: number[]): ObjectSet {
  if (ranges.length <= SHORT) return ranges;
  const bytes = fromRanges(ranges, model.objects);
  let best: ObjectSet = ranges;
  let length = ranges.length;
  for (const name of groupLabels(model)) {
    const packed = byWords(codedLabel(model, name)!, bytes);
    const size = packed.except.length + 2 * packed.words.length;
    if (size < length) [best, length] = [packed, size];
  }
  return best;
}

/** Words of which most objects are in the set; both ways of differing are exceptions. */
function byWords(label: Coded, bytes: Uint8Array): Exclude<ObjectSet, number[]> {
  const inside = new Uint32Array(label.words.length);
  for (let object = 0; object < bytes.length; object++) inside[label.codes[object]] += bytes[object];
  const taken = inside.map((count, code) => Number(2 * count > label.counts[code]));
  const except = toRanges(bytes.map((byte, object) => byte ^ taken[label.codes[object]]));
  return { label: label.name, words: label.words.filter((_, code) => taken[code]), except };
}

/** The ranges of a set; null if its label is none of this scene. */
export function unpackSet(model: SceneModel, set: ObjectSet): number[] | null {
  if (Array.isArray(set)) return set;
  const label = codedLabel(model, set.label);
  if (!label) return null;
  const taken = label.words.map((word) => Number(set.words.includes(word)));
  return toRanges(fromRanges(set.except, model.objects).map((byte, object) => byte ^ taken[label.codes[object]]));
}
