/** Labels of objects: their values as codes, and the names under which lists show an object. */

import { short } from "./format.ts";
import { geometryOf } from "./geometry.ts";
import type { Label, SceneModel } from "./types.ts";

/** A class or text label: the word of each object by its code; the last word stands for "no value". */
export interface Coded {
  name: string;
  words: string[];
  codes: Uint32Array;
  counts: Uint32Array;
}

/** Ids of at least this length are GUIDs, which lists do not show. */
const LONG_ID = 22;
/** A label of this many words groups objects even if each word occurs once. */
const SMALL = 32;
export const NONE = "(none)";
const coded = new WeakMap<Label, Coded>();

export function labelOf(model: SceneModel, name: string | null): Label | null {
  return model.labels.find((label) => label.name === name) ?? null;
}

/** The words and codes of a label that is no number; made at the first call. */
export function codedLabel(model: SceneModel, name: string | null): Coded | null {
  const label = labelOf(model, name);
  if (!label || label.kind === "number") return null;
  let made = coded.get(label);
  if (!made) coded.set(label, (made = encode(label)));
  return made;
}

function encode(label: Exclude<Label, { kind: "number" }>): Coded {
  return label.kind === "class" ? fromCodes(label) : fromTexts(label);
}

function fromCodes(label: Extract<Label, { kind: "class" }>): Coded {
  const words = [...label.words, NONE];
  const codes = Uint32Array.from(label.codes, (code) => (code >= label.words.length ? label.words.length : code));
  return { name: label.name, words, codes, counts: countCodes(codes, words.length) };
}

function fromTexts(label: Extract<Label, { kind: "text" }>): Coded {
  const numbers = new Map<string, number>();
  const codes = new Uint32Array(label.values.length);
  label.values.forEach((text, object) => {
    const word = text ?? NONE;
    if (!numbers.has(word)) numbers.set(word, numbers.size);
    codes[object] = numbers.get(word)!;
  });
  return { name: label.name, words: [...numbers.keys()], codes, counts: countCodes(codes, numbers.size) };
}

function countCodes(codes: ArrayLike<number>, words: number): Uint32Array {
  const counts = new Uint32Array(words);
  for (let object = 0; object < codes.length; object++) counts[codes[object]]++;
  return counts;
}

/** Codes that occur, the most frequent first. */
export function frequentCodes({ counts }: Coded): number[] {
  return [...counts.keys()].filter((code) => counts[code]).sort((a, b) => counts[b] - counts[a] || a - b);
}

/** The value of a label at an object as text; null where it has none. */
export function textOf(label: Label, object: number): string | null {
  if (label.kind === "text") return label.values[object] ?? null;
  if (label.kind === "class") return label.words[label.codes[object]] ?? null;
  return Number.isNaN(label.values[object]) ? null : short(label.values[object]);
}

export const KINDS = { boxes: "box", mesh: "object", instances: "copy", grid: "cell", planes: "plane" };

/** How lists name objects: by class and name, else by id, else by number. */
export class Naming {
  private readonly names: Label | null;
  private readonly classes: Label | null;

  constructor(private readonly model: SceneModel) {
    this.names = labelOf(model, model.names);
    this.classes = labelOf(model, model.classes);
  }

  name(object: number): string {
    const name = this.names && textOf(this.names, object);
    return name?.trim() ? name : this.readableId(object) || `#${object}`;
  }

  /** GUIDs name nothing to people. */
  private readableId(object: number): string | null {
    const id = this.model.ids?.[object];
    return id?.trim() && id.length < LONG_ID ? id : null;
  }

  /** The class of an object, else what its geometry is made of. */
  class(object: number): string {
    const word = this.classes && textOf(this.classes, object);
    return word?.trim() ? word : this.kind(object);
  }

  private kind(object: number): string {
    const geometry = this.model.geometries[geometryOf(this.model, object)];
    return geometry ? KINDS[geometry.type] : "";
  }

  full(object: number): string {
    return [this.class(object), this.name(object)].filter(Boolean).join(" ");
  }

  /** What "copy id" copies. */
  id(object: number): string {
    return this.model.ids?.[object] || String(object);
  }
}

/** Least and greatest finite value; null if there are not two different ones. */
export function extent(values: ArrayLike<number>): [number, number] | null {
  let low = Infinity;
  let high = -Infinity;
  for (let object = 0; object < values.length; object++) {
    const value = values[object];
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low < high ? [low, high] : null;
}

/** Number labels of at least two values: those that a range can filter. */
export function numberLabels(model: SceneModel): { name: string; values: Float64Array; extent: [number, number] }[] {
  return model.labels.flatMap((label) => {
    if (label.kind !== "number") return [];
    const found = extent(label.values);
    return found ? [{ name: label.name, values: label.values, extent: found }] : [];
  });
}

/** Class and text labels by which objects can be grouped: two words or more, of which most occur several times. */
export function groupLabels(model: SceneModel): string[] {
  const first = [model.classes, model.levels].filter((name): name is string => name !== null);
  const others = model.labels.filter((label) => label.kind !== "number").map((label) => label.name);
  return [...new Set([...first, ...others])].filter((name) => groups(model, name));
}

function groups(model: SceneModel, name: string): boolean {
  const label = codedLabel(model, name);
  if (!label) return false;
  const words = label.counts.filter(Boolean).length;
  return words > 1 && (2 * words <= label.codes.length || words <= SMALL);
}
