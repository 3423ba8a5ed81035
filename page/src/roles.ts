/** What labels of words are for: which class objects, name them, and give their storey. */

import type { Label, SceneModel } from "./types.ts";

/** The first of these that a scene has. */
const NAMES = ["name", "Name", "label", "title"];
const CLASSES = ["ifc_class", "type", "class", "category", "label", "kind", "material", "color"];
const LEVELS = ["storey", "level", "floor", "layer"];
/** Words of a label that is a class: at most a quarter of its objects', or 24. */
const MOST_WORDS = 2000;
const FEW_WORDS = 24;

/** Returns a class where words recur, else text. */
export function wordLabel(name: string, words: string[], codes: Uint32Array): Label {
  const most = Math.min(MOST_WORDS, Math.max(FEW_WORDS, codes.length / 4));
  if (LEVELS.includes(name) || words.length <= most) return { name, kind: "class", words, codes };
  return { name, kind: "text", values: Array.from(codes, (code) => words[code] ?? null) };
}

export function rolesOf(labels: readonly Label[]): Pick<SceneModel, "names" | "classes" | "levels"> {
  const texts = labels.filter((label) => label.kind !== "number").map((label) => label.name);
  const sizes = new Map(labels.map((label) => [label.name, label.kind === "class" ? label.words.length : 0]));
  const small = [...sizes.keys()].filter((name) => sizes.get(name)! > 1 && sizes.get(name)! <= FEW_WORDS);
  const classes = [...CLASSES, ...small].find((name) => sizes.get(name)) ?? null;
  const names = NAMES.find((name) => texts.includes(name) && name !== classes) ?? null;
  return { names, classes, levels: LEVELS.find((name) => texts.includes(name)) ?? null };
}
