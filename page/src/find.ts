/** Search for objects by number, id, name and label, or by a comparison such as `height > 3`. */

import { codedLabel, labelOf, Naming, textOf } from "./labels.ts";
import type { Label, SceneModel } from "./types.ts";

const BEST = 0;
const GOOD = 1;
const FAIR = 2;
/** All words are found, but not next to one another in this order. */
const APART = 3;
const NEVER = 4;
type Rank = (object: number) => number;
const COMPARISONS: Record<string, (a: number, b: number) => boolean> = {
  "=": (a, b) => a === b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

/**
 * Objects that a text finds, the best first: exact matches, starts, and parts of names, ids and labels, then objects
 * with all of its words in any order.
 */
export function find(model: SceneModel, text: string): number[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const rank = comparison(model, text.trim()) ?? wordsRank(model, wanted);
  const found: number[][] = [[], [], [], []];
  for (let object = 0; object < model.objects; object++) found[rank(object)]?.push(object);
  return found.flat();
}

/** `label = value` and `label > number`, where the label exists. */
function comparison(model: SceneModel, text: string): Rank | null {
  const [, name, sign, value] = /^(.+?)\s*(<=|>=|=|<|>)\s*(.+)$/.exec(text) ?? [];
  const label = model.labels.find((one) => one.name.toLowerCase() === name?.toLowerCase());
  if (!label) return null;
  const compare = COMPARISONS[sign];
  if (label.kind === "number") return (object) => (compare(label.values[object], Number(value)) ? BEST : NEVER);
  return sign === "=" ? equalText(label, value.toLowerCase()) : null;
}

function equalText(label: Label, value: string): Rank {
  return (object) => (textOf(label, object)?.toLowerCase() === value ? BEST : NEVER);
}

/** The rank of the whole text, else whether each word is found; among words, a number is a whole one. */
function wordsRank(model: SceneModel, wanted: string): Rank {
  const whole = textRank(model, wanted, matchOf);
  const words = [...new Set(wanted.split(/[\s,;]+/).filter(Boolean))];
  if (words.length < 2) return whole;
  const ranks = words.map((word) => textRank(model, word, /^\d+$/.test(word) ? matchOfNumber : matchOf));
  return (object) => {
    const best = whole(object);
    return best < NEVER || ranks.some((rank) => rank(object) === NEVER) ? best : APART;
  };
}

type Match = (text: string, wanted: string) => number;

function textRank(model: SceneModel, wanted: string, match: Match): Rank {
  const number = match === matchOf && /^#?\d+$/.test(wanted) ? Number(wanted.replace("#", "")) : -1;
  const naming = new Naming(model);
  const named = labelOf(model, model.names) !== null;
  const words = wordRanks(model, wanted, match);
  return (object) => {
    let best = object === number ? BEST : NEVER;
    if (model.ids) best = Math.min(best, match(model.ids[object], wanted));
    if (named) best = Math.min(best, match(naming.name(object), wanted));
    for (const { codes, ranks } of words) best = Math.min(best, ranks[codes[object]]);
    return best;
  };
}

/** How a text contains a number that is a word of its own, no part of a longer number or of a GUID. */
function matchOfNumber(text: string, wanted: string): number {
  return text.split(/[^\p{L}\p{N}]+/u).includes(wanted) ? FAIR : NEVER;
}

function matchOf(text: string, wanted: string): number {
  const lower = text.toLowerCase();
  if (lower === wanted) return BEST;
  const at = lower.indexOf(wanted);
  return at < 0 ? NEVER : at === 0 ? GOOD : FAIR;
}

/** Of class labels each word is compared once, not each object. */
function wordRanks(model: SceneModel, wanted: string, match: Match) {
  const names = model.labels.filter((label) => label.kind !== "number" && label.name !== model.names);
  return names.map((label) => {
    const { codes, words } = codedLabel(model, label.name)!;
    return { codes, ranks: words.map((word) => (match(word, wanted) === NEVER ? NEVER : FAIR)) };
  });
}
