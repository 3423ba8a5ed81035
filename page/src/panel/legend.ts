/** The legend: the very colours that are drawn, with counts. */

import { el } from "../dom.ts";
import { count } from "../format.ts";
import type { LegendEntry } from "../types.ts";

export function legendRows(entries: LegendEntry[]): HTMLElement[] {
  return entries.map((entry) =>
    el("div", { class: "entry" }, ...(entry.colours.length > 1 ? scale(entry) : word(entry))),
  );
}

function word({ text, colours, count: number }: LegendEntry): HTMLElement[] {
  const swatch = el("i", { class: "swatch" });
  swatch.style.background = colours[0];
  const label = el("span", { class: "text", title: text }, text);
  return number === undefined ? [swatch, label] : [swatch, label, el("small", {}, count(number))];
}

function scale({ text, colours }: LegendEntry): HTMLElement[] {
  const bar = el("i", { class: "scale" });
  bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
  return [el("span", { class: "text", title: text }, text), bar];
}
