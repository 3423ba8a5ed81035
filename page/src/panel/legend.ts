/** The legend: the very colours that are drawn, with counts. */

import type { Actions } from "../actions.ts";
import { el, iconButton, replace } from "../dom.ts";
import { count, wordText } from "../format.ts";
import { MOST_OUTLINES } from "../stage/outline.ts";
import type { Store } from "../store.ts";
import type { LegendEntry, View } from "../types.ts";

/** The legend over the scene: its head is dragged, and closes it. */
export class LegendOverlay {
  readonly element: HTMLElement;
  private readonly head: HTMLElement;
  private from: { x: number; y: number } | null = null;

  constructor(private readonly actions: Actions) {
    const { store } = actions;
    const close = iconButton("close", "close the legend (K)", "legend-close", () => this.set({ on: false }));
    const title = el("span", { class: "text" }, "Legend");
    this.head = el("div", { class: "bar", title: "drag the legend", "data-test": "legend-head" }, title, close);
    this.head.addEventListener("pointerdown", (event) => this.start(event));
    this.head.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.head.addEventListener(end, () => (this.from = null));
    this.element = el("div", { class: "legend overlay", "data-test": "scene-legend" });
    store.watch(["legend"], () => this.place());
  }

  fill(entries: LegendEntry[]): void {
    replace(this.element, this.head, ...legendRows(entries));
    this.place();
  }

  private set(change: Partial<View["legend"]>): void {
    const { store } = this.actions;
    store.set({ legend: { ...store.state.legend, ...change } });
  }

  private place(): void {
    const { on, x, y } = this.actions.store.state.legend;
    this.element.classList.toggle("closed", !on);
    this.element.hidden = !this.element.querySelector(on ? ".entry" : ".remark");
    this.element.style.transform = `translate(${x}px, ${y}px)`;
  }

  private start(event: PointerEvent): void {
    if ((event.target as HTMLElement).closest("button")) return;
    const { x, y } = this.actions.store.state.legend;
    this.from = { x: event.clientX - x, y: event.clientY - y };
    this.head.setPointerCapture(event.pointerId);
  }

  /** Move the legend; its head stays over the scene. */
  private drag(event: PointerEvent): void {
    if (!this.from) return;
    const { offsetLeft, offsetParent, offsetTop, offsetWidth } = this.element;
    const within = (value: number, low: number, high: number) => Math.min(Math.max(value, low), Math.max(low, high));
    this.set({
      x: within(event.clientX - this.from.x, -offsetLeft, offsetParent!.clientWidth - offsetLeft - offsetWidth),
      y: within(event.clientY - this.from.y, -offsetTop, offsetParent!.clientHeight - offsetTop - this.head.offsetHeight),
    });
  }
}

/** What is drawn in part, or otherwise than it is. */
export function remarksOf({ model, state, visibility }: Store): LegendEntry[] {
  const selected = state.selection.filter((object) => visibility.shown[object]).length;
  const outlined = selected > MOST_OUTLINES && `${count(MOST_OUTLINES)} of ${count(selected)} selected objects outlined`;
  const cells = model.geometries.flatMap((one) => (one.type === "grid" && !one.visible ? [one.primitives] : []));
  const grids = cells.map((size) => `a grid of ${count(size)} cells is drawn as its outline`);
  return [outlined || [], grids].flat().map((text) => ({ text, colours: [] }));
}

export function legendRows(entries: LegendEntry[]): HTMLElement[] {
  return entries.map((entry) =>
    entry.colours.length
      ? el("div", { class: "entry" }, ...(entry.colours.length > 1 ? scale(entry) : word(entry)))
      : el("div", { class: "entry remark" }, entry.text),
  );
}

function word({ text, colours, count: number }: LegendEntry): HTMLElement[] {
  const swatch = el("i", { class: "swatch" });
  swatch.style.background = colours[0];
  const label = el("span", { class: "text", title: text }, wordText(text));
  return number === undefined ? [swatch, label] : [swatch, label, el("small", {}, count(number))];
}

function scale({ text, colours }: LegendEntry): HTMLElement[] {
  const bar = el("i", { class: "scale" });
  bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
  return [el("span", { class: "text", title: text }, text), bar];
}
