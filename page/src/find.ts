/** Search for objects by number, id, name and label, or by a comparison such as `height > 3`. */

import { codedLabel, labelOf, Naming, textOf } from "./labels.ts";
import type { Label, SceneModel } from "./types.ts";

export interface Found {
  /** The best first; at most `limit`. */
  objects: number[];
  total: number;
}

const BEST = 0;
const GOOD = 1;
const FAIR = 2;
const NEVER = 3;
type Rank = (object: number) => number;
const COMPARISONS: Record<string, (a: number, b: number) => boolean> = {
  "=": (a, b) => a === b,
  "<": (a, b) => a < b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  ">=": (a, b) => a >= b,
};

/** Objects that a text finds: exact matches first, then starts, then parts of names, ids and labels. */
export function find(model: SceneModel, text: string, limit: number): Found {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return { objects: [], total: 0 };
  const rank = comparison(model, text.trim()) ?? textRank(model, wanted);
  const found: number[][] = [[], [], []];
  let total = 0;
  for (let object = 0; object < model.objects; object++) {
    const place = rank(object);
    if (place === NEVER) continue;
    total++;
    if (found[place].length < limit) found[place].push(object);
  }
  return { objects: found.flat().slice(0, limit), total };
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

function textRank(model: SceneModel, wanted: string): Rank {
  const number = /^#?\d+$/.test(wanted) ? Number(wanted.replace("#", "")) : -1;
  const naming = new Naming(model);
  const named = labelOf(model, model.names) !== null;
  const words = wordRanks(model, wanted);
  return (object) => {
    let best = object === number ? BEST : NEVER;
    if (model.ids) best = Math.min(best, matchOf(model.ids[object], wanted));
    if (named) best = Math.min(best, matchOf(naming.name(object), wanted));
    for (const { codes, ranks } of words) best = Math.min(best, ranks[codes[object]]);
    return best;
  };
}

function matchOf(text: string, wanted: string): number {
  const lower = text.toLowerCase();
  if (lower === wanted) return BEST;
  const at = lower.indexOf(wanted);
  return at < 0 ? NEVER : at === 0 ? GOOD : FAIR;
}

/** Of class labels each word is compared once, not each object. */
function wordRanks(model: SceneModel, wanted: string) {
  const names = model.labels.filter((label) => label.kind !== "number" && label.name !== model.names);
  return names.map((label) => {
    const { codes, words } = codedLabel(model, label.name)!;
    return { codes, ranks: words.map((word) => (matchOf(word, wanted) === NEVER ? NEVER : FAIR)) };
  });
}
