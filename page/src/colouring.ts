/** The colour of every object and the legend that says the same. */

import { codedLabel, extent, frequentCodes, groupLabels, labelOf, numberLabels, type Coded } from "./labels.ts";
import { CATEGORIES, OTHER, PLAIN, RAMP, ramp, rgb } from "./look.ts";
import { count, short } from "./format.ts";
import { heights } from "./heights.ts";
import type { ColourBy, LegendEntry, Look, SceneModel } from "./types.ts";
import type { Visibility } from "./visibility.ts";

export interface Colouring {
  /** Three bytes an object. */
  rgb: Uint8Array;
  legend: LegendEntry[];
}

/** Ways to colour this scene, each with the text that names it; a way without effect is absent. */
export function waysToColour(model: SceneModel): { colour: ColourBy; text: string }[] {
  const groups = groupLabels(model);
  const labels = [...groups.filter((name) => name !== model.classes), ...numberLabels(model).map(({ name }) => name)];
  const ways: { colour: ColourBy; text: string }[] = [];
  if (model.classes && groups.includes(model.classes)) ways.push({ colour: { by: "class" }, text: model.classes });
  ways.push(...labels.map((label) => ({ colour: { by: "label" as const, label }, text: label })));
  if (extent(heights(model))) ways.push({ colour: { by: "height" }, text: "height" });
  return [...ways, { colour: { by: "plain" }, text: "one colour" }];
}

/** Colours before the user chooses: classes if there are several. */
export function firstColour(model: SceneModel): ColourBy {
  return waysToColour(model)[0].colour.by === "class" ? { by: "class" } : { by: "plain" };
}

export function colouring(model: SceneModel, colour: ColourBy): Colouring {
  if (colour.by === "plain") return { rgb: filled(model.objects, rgb(PLAIN)), legend: [] };
  if (colour.by === "height") return byNumber("height", heights(model));
  const name = colour.by === "class" ? model.classes : colour.label;
  const label = labelOf(model, name);
  if (label?.kind === "number") return byNumber(label.name, label.values);
  const coded = codedLabel(model, name);
  return coded ? byWord(coded) : { rgb: filled(model.objects, rgb(PLAIN)), legend: [] };
}

/** The most frequent words have colours, the others are grey. */
function byWord(label: Coded): Colouring {
  const frequent = frequentCodes(label);
  const top = frequent.slice(0, CATEGORIES.length);
  const colours = label.words.map((_, code) => rgb(CATEGORIES[top.indexOf(code)] ?? OTHER));
  const bytes = new Uint8Array(3 * label.codes.length);
  for (let object = 0; object < label.codes.length; object++) bytes.set(colours[label.codes[object]], 3 * object);
  return { rgb: bytes, legend: wordLegend(label, frequent, top) };
}

function wordLegend({ words, counts }: Coded, frequent: number[], top: number[]): LegendEntry[] {
  const entries: LegendEntry[] = top.map((code, at) => ({
    text: words[code],
    colours: [CATEGORIES[at]],
    count: counts[code],
  }));
  const others = frequent.slice(top.length);
  if (!others.length) return entries;
  const text = others.length === 1 ? words[others[0]] : `${count(others.length)} others`;
  return [...entries, { text, colours: [OTHER], count: others.reduce((sum, code) => sum + counts[code], 0) }];
}

/** A continuous scale from the least to the greatest value; objects without a value are grey. */
function byNumber(name: string, values: ArrayLike<number>): Colouring {
  const [low, high] = extent(values) ?? [0, 1];
  const none = rgb(OTHER);
  const bytes = new Uint8Array(3 * values.length);
  let missing = 0;
  for (let object = 0; object < values.length; object++) {
    const valid = Number.isFinite(values[object]);
    if (!valid) missing++;
    bytes.set(valid ? ramp((values[object] - low) / (high - low)) : none, 3 * object);
  }
  const scale = { text: `${name}: ${short(low)} to ${short(high)}`, colours: [...RAMP] };
  return { rgb: bytes, legend: missing ? [scale, { text: "no value", colours: [OTHER], count: missing }] : [scale] };
}

function filled(objects: number, [red, green, blue]: [number, number, number]): Uint8Array {
  const bytes = new Uint8Array(3 * objects);
  for (let at = 0; at < bytes.length; at += 3) bytes.set([red, green, blue], at);
  return bytes;
}

/** Colours with what is hidden at 0 and each class at its opacity. */
export function lookOf(
  model: SceneModel,
  colours: Uint8Array,
  { shown }: Visibility,
  opacity: Record<string, number>,
): Look {
  const classes = Object.keys(opacity).length ? codedLabel(model, model.classes) : null;
  const alphas = classes?.words.map((word) => Math.round(255 * (opacity[word] ?? 1)));
  const rgba = new Uint8Array(4 * model.objects);
  for (let object = 0; object < model.objects; object++) {
    if (!shown[object]) continue;
    rgba[4 * object] = colours[3 * object];
    rgba[4 * object + 1] = colours[3 * object + 1];
    rgba[4 * object + 2] = colours[3 * object + 2];
    rgba[4 * object + 3] = alphas ? alphas[classes!.codes[object]] : 255;
  }
  return { rgba };
}
