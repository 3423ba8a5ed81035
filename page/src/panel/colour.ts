/** Colour by class, label or height with the legend of it, opacity by class, and edges. */

import type { Actions } from "../actions.ts";
import { colouring, waysToColour } from "../colouring.ts";
import { choice, el, replace } from "../dom.ts";
import { wordText } from "../format.ts";
import { codedLabel, frequentCodes, groupLabels } from "../labels.ts";
import type { LegendEntry } from "../types.ts";
import { button } from "./command.ts";
import { legendRows } from "./legend.ts";

export class ColourPanel {
  readonly element: HTMLElement;
  private readonly legend = el("div", { class: "legend", "data-test": "legend" });

  constructor(actions: Actions, changed: (legend: LegendEntry[]) => void) {
    const { store } = actions;
    const ways = waysToColour(store.model);
    const options = ways.map(({ text }, at) => ({ value: String(at), text }));
    const by = choice("colour objects by", "colour-by", options, (at) =>
      store.set({ colour: ways[Number(at)].colour }),
    );
    const colour = ways.length > 1 && el("label", {}, "Colour by ", by);
    const bar = el("div", { class: "bar" }, colour, button(actions, "edges"), button(actions, "legend-on"));
    this.element = el("div", { class: "panel colour" }, bar, this.legend, opacities(actions));
    store.watch(["colour"], () => {
      by.value = String(ways.findIndex(({ colour }) => JSON.stringify(colour) === JSON.stringify(store.state.colour)));
    });
    store.watch(["colour", "hidden", "ranges"], () => {
      const legend = colouring(store.model, store.state.colour).legend(store.visibility.shown);
      replace(this.legend, ...legendRows(legend));
      changed(legend);
    });
  }
}

/** A slider for each class; absent with fewer than two. */
function opacities(actions: Actions): HTMLElement | null {
  const { model } = actions.store;
  const label = model.classes && groupLabels(model).includes(model.classes) ? codedLabel(model, model.classes) : null;
  if (!label) return null;
  const words = frequentCodes(label).map((code) => label.words[code]);
  const rows = words.map((word) => opacity(actions, word));
  return el("div", { class: "block" }, el("h2", {}, "Opacity ", button(actions, "opacity-reset")), ...rows);
}

function opacity(actions: Actions, word: string): HTMLElement {
  const { store } = actions;
  const change = () => {
    const { [word]: _, ...others } = store.state.opacity;
    const value = slider.valueAsNumber / 100;
    store.set({ opacity: value === 1 ? others : { ...others, [word]: value } });
  };
  const attributes = { type: "range", min: 5, max: 100, step: 5, "aria-label": `opacity of ${word}` };
  const slider = el("input", { ...attributes, "data-test": `opacity-${word}`, oninput: change });
  const text = el("small");
  store.watch(["opacity"], () => {
    slider.valueAsNumber = Math.round(100 * (store.state.opacity[word] ?? 1));
    text.textContent = `${slider.value} %`;
  });
  return el("label", { class: "opacity" }, el("span", { class: "text", title: word }, wordText(word)), slider, text);
}
