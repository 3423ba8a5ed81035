/** The colour of every object and the legend that says the same. */

import { codedLabel, extent, frequentCodes, groupLabels, labelOf, NONE, numberLabels, type Coded } from "./labels.ts";
import { classColour } from "./class_colours.ts";
import { fileColours, isByObject } from "./file_colours.ts";
import { CATEGORIES, hexOf, OTHER, PLAIN, RAMP, ramp, rgb } from "./look.ts";
import { count, short } from "./format.ts";
import { heights } from "./heights.ts";
import type { Store } from "./store.ts";
import type { ColourBy, LegendEntry, Look, SceneModel } from "./types.ts";

export interface Colouring {
  /** Three bytes an object. */
  rgb: Uint8Array;
  /** One byte an object, where some are translucent. */
  opacity?: Uint8Array;
  /** What is drawn of the objects whose byte is 1. */
  legend: (shown: Uint8Array) => LegendEntry[];
}

/** The most classes that have colours by their names. */
const MOST_NAMED = 24;

/** Ways to colour this scene, each with the text that names it; a way without effect is absent. */
export function waysToColour(model: SceneModel): { colour: ColourBy; text: string }[] {
  const groups = groupLabels(model);
  const labels = [...groups.filter((name) => name !== model.classes), ...numberLabels(model).map(({ name }) => name)];
  const ways: { colour: ColourBy; text: string }[] = [];
  if (model.palette) ways.push({ colour: { by: "file" }, text: "file" });
  if (model.classes && groups.includes(model.classes)) ways.push({ colour: { by: "class" }, text: model.classes });
  ways.push(...labels.map((label) => ({ colour: { by: "label" as const, label }, text: label })));
  if (extent(heights(model))) ways.push({ colour: { by: "height" }, text: "height" });
  return [...ways, { colour: { by: "plain" }, text: "one colour" }];
}

/** Colours before the user chooses: the file's, else classes if there are several. */
export function firstColour(model: SceneModel): ColourBy {
  const [{ colour }] = waysToColour(model);
  return colour.by === "file" || colour.by === "class" ? colour : { by: "plain" };
}

const made = new WeakMap<ColourBy, Colouring>();

/** The colours of a way to colour; computed at the first call. */
export function colouring(model: SceneModel, colour: ColourBy): Colouring {
  let found = made.get(colour);
  if (!found) made.set(colour, (found = compute(model, colour)));
  return found;
}

/** Colours with those that whole geometries have of their own. */
function compute(model: SceneModel, colour: ColourBy): Colouring {
  const found = computeWay(model, colour);
  for (const { color, firstObject, objects } of model.geometries) {
    if (color) found.opacity?.fill(255, firstObject, firstObject + objects);
    for (let at = firstObject; color && at < firstObject + objects; at++) found.rgb.set(rgb(color), 3 * at);
  }
  return found;
}

function computeWay(model: SceneModel, colour: ColourBy): Colouring {
  if (colour.by === "plain") return plain(model);
  if (colour.by === "file") return byFile(model);
  if (colour.by === "height") return byNumber("height", heights(model));
  const name = colour.by === "label" ? colour.label : model.classes;
  const label = labelOf(model, name);
  if (label?.kind === "number") return byNumber(label.name, label.values);
  const coded = codedLabel(model, name);
  return coded ? byWord(coded, wordOrder(model, coded), colour.by === "class") : plain(model);
}

/** The colours of the file; where it states none, those of classes. */
function byFile(model: SceneModel): Colouring {
  const { rgb: bytes, opacity = new Uint8Array(model.objects).fill(255) } = computeWay(model, { by: "class" });
  const own = fileColours(model);
  for (const geometry of model.geometries) {
    for (let object = geometry.firstObject; object < geometry.firstObject + geometry.objects; object++) {
      if (own[4 * object + 3] === 0) continue;
      bytes.set(own.subarray(4 * object, 4 * object + 3), 3 * object);
      opacity[object] = isByObject(geometry) ? own[4 * object + 3] : 255;
    }
  }
  const label = codedLabel(model, model.classes);
  return { rgb: bytes, opacity, legend: label ? meanLegend(label, wordOrder(model, label), bytes) : () => [] };
}

/** The legend of words with the mean colour of the objects of each. */
function meanLegend(label: Coded, order: number[], bytes: Uint8Array): Colouring["legend"] {
  const sums = new Float64Array(3 * label.words.length);
  label.codes.forEach((code, object) => [0, 1, 2].forEach((k) => (sums[3 * code + k] += bytes[3 * object + k])));
  const colours = label.words.map((_, code) =>
    hexOf([0, 1, 2].map((k) => Math.round(sums[3 * code + k] / (label.counts[code] || 1)))),
  );
  const top = order.slice(0, MOST_NAMED);
  return (shown) => wordLegend(label, top, colours, countShown(label, (object) => shown[object]));
}

function plain({ objects }: SceneModel): Colouring {
  const bytes = new Uint8Array(3 * objects);
  const colour = rgb(PLAIN);
  for (let at = 0; at < bytes.length; at += 3) bytes.set(colour, at);
  return { rgb: bytes, legend: () => [] };
}

/** The words, the most frequent of what is drawn at the start first: they keep their colours when others appear. */
function wordOrder({ hiddenAtStart }: SceneModel, label: Coded): number[] {
  const counts = countShown(label, (object) => !hiddenAtStart?.[object]);
  const hidden = frequentCodes(label).filter((code) => !counts[code]);
  const order = [...frequentCodes({ ...label, counts }), ...hidden];
  return order.filter((code) => label.words[code] !== NONE);
}

function countShown({ codes, words }: Coded, shown: (object: number) => boolean | number): Uint32Array {
  const counts = new Uint32Array(words.length);
  for (let object = 0; object < codes.length; object++) if (shown(object)) counts[codes[object]]++;
  return counts;
}

/** The first words have colours, the others are grey; byName: classes have the colours of what they name. */
function byWord(label: Coded, order: number[], byName: boolean): Colouring {
  const first = byName ? order.slice(0, MOST_NAMED) : [];
  const named = new Map(first.map((code) => [code, classColour(label.words[code])]));
  const others = order.filter((code) => !named.get(code)).slice(0, CATEGORIES.length);
  const top = order.filter((code) => named.get(code) || others.includes(code));
  const hex = label.words.map((_, code) => named.get(code)?.colour ?? CATEGORIES[others.indexOf(code)] ?? OTHER);
  const colours = hex.map(rgb);
  const bytes = new Uint8Array(3 * label.codes.length);
  for (let object = 0; object < label.codes.length; object++) bytes.set(colours[label.codes[object]], 3 * object);
  return {
    rgb: bytes,
    opacity: Uint8Array.from(label.codes, (code) => named.get(code)?.opacity ?? 255),
    legend: (shown) => wordLegend(label, top, hex, countShown(label, (object) => shown[object])),
  };
}

function wordLegend({ words }: Coded, top: number[], colours: string[], counts: Uint32Array): LegendEntry[] {
  const entries = top.map((code) => ({ text: words[code], colours: [colours[code]], count: counts[code] }));
  const others = words.map((_, code) => code).filter((code) => counts[code] && !top.includes(code));
  const text = others.length === 1 ? words[others[0]] : `${count(others.length)} others`;
  const rest = { text, colours: [OTHER], count: others.reduce((sum, code) => sum + counts[code], 0) };
  return [...entries, rest].filter((entry) => entry.count);
}

/** A continuous scale from the least to the greatest value; objects without a value are grey. */
function byNumber(name: string, values: ArrayLike<number>): Colouring {
  const [low, high] = extent(values) ?? [0, 1];
  const none = rgb(OTHER);
  const bytes = new Uint8Array(3 * values.length);
  for (let object = 0; object < values.length; object++) {
    const valid = Number.isFinite(values[object]);
    bytes.set(valid ? ramp((values[object] - low) / (high - low)) : none, 3 * object);
  }
  const scale = { text: `${name}: ${short(low)} to ${short(high)}`, colours: [...RAMP] };
  const missing = (shown: Uint8Array) =>
    shown.reduce((sum, byte, at) => sum + Number(byte && !Number.isFinite(values[at])), 0);
  const legend = (shown: Uint8Array) => {
    const entries: LegendEntry[] = [scale, { text: "no value", colours: [OTHER], count: missing(shown) }];
    return entries.filter((entry) => entry.count !== 0);
  };
  return { rgb: bytes, legend };
}

/** Colours with what is hidden at 0 and each class at its opacity. */
export function lookOf({ model, state, visibility }: Store): Look {
  const { rgb: colours, opacity } = colouring(model, state.colour);
  const { shown } = visibility;
  const classes = Object.keys(state.opacity).length ? codedLabel(model, model.classes) : null;
  const alphas = classes?.words.map((word) => Math.round(255 * (state.opacity[word] ?? 1)));
  const rgba = new Uint8Array(4 * model.objects);
  for (let object = 0; object < model.objects; object++) {
    if (!shown[object]) continue;
    rgba[4 * object] = colours[3 * object];
    rgba[4 * object + 1] = colours[3 * object + 1];
    rgba[4 * object + 2] = colours[3 * object + 2];
    const own = opacity?.[object] ?? 255;
    rgba[4 * object + 3] = alphas ? Math.round((own * alphas[classes!.codes[object]]) / 255) : own;
  }
  return { rgba, byFile: state.colour.by === "file" };
}
