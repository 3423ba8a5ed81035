/** A slider with two ends for each number label: what is outside is hidden. */

import type { Actions } from "../actions.ts";
import { el, iconButton, numberField } from "../dom.ts";
import { short } from "../format.ts";
import { numberLabels } from "../labels.ts";

const STEPS = 1000;
type Labelled = ReturnType<typeof numberLabels>[number] & { title?: string };

/** The sliders of a scene; null if it has no number labels. */
export function ranges(actions: Actions): HTMLElement | null {
  const labels = numberLabels(actions.store.model);
  if (!labels.length) return null;
  const rows = labels.map((label) => new RangeFilter(actions, label).element);
  return el("div", { class: "block", "data-test": "ranges" }, el("h2", {}, "Ranges"), ...rows);
}

export class RangeFilter {
  readonly element: HTMLElement;
  private readonly sliders: HTMLInputElement[];
  private readonly fields: ReturnType<typeof numberField>[];
  private readonly bar = el("i", { class: "between" });
  private readonly clear: HTMLButtonElement;

  constructor(
    private readonly actions: Actions,
    private readonly label: Labelled,
  ) {
    const { name } = label;
    this.sliders = ["least", "greatest"].map((end, at) => this.slider(`${end} ${name}`, `range-${name}-${at}`));
    this.fields = ["least", "greatest"].map((end, at) =>
      numberField(`${end} ${name}`, `range-${name}-field-${at}`, (value) => this.set(at, value)),
    );
    this.clear = iconButton("close", `any ${name}`, `range-${name}-clear`, () => actions.setRange(name, null));
    this.element = el(
      "div",
      { class: "range", role: "group", "aria-label": name },
      el("span", { class: "text", title: `${name}: ${label.extent.map(short).join(" to ")}` }, label.title ?? name),
      el("div", { class: "double" }, this.bar, ...this.sliders),
      ...this.fields.map(({ input }) => input),
      this.clear,
    );
    actions.store.watch(["ranges"], () => this.draw());
  }

  private slider(label: string, test: string): HTMLInputElement {
    const attributes = { type: "range", min: 0, max: STEPS, step: 1, "aria-label": label, "data-test": test };
    const slider: HTMLInputElement = el("input", {
      ...attributes,
      oninput: () => this.set(this.sliders.indexOf(slider), this.valueAt(slider.valueAsNumber)),
    });
    return slider;
  }

  /** Both ends of the slider are the very extremes: no step between is rounded to them. */
  private valueAt(step: number): number {
    const [low, high] = this.label.extent;
    if (step <= 0) return low;
    return step >= STEPS ? high : low + ((high - low) * step) / STEPS;
  }

  private get range(): [number, number] {
    return this.actions.store.state.ranges[this.label.name] ?? this.label.extent;
  }

  /** Move one end; it does not pass the other. */
  private set(end: number, value: number): void {
    const [low, high] = this.range;
    const range: [number, number] = end === 0 ? [Math.min(value, high), high] : [low, Math.max(value, low)];
    const [least, greatest] = this.label.extent;
    const whole = range[0] <= least && range[1] >= greatest;
    this.actions.setRange(this.label.name, whole ? null : range);
    this.draw();
  }

  private draw(): void {
    const [least, greatest] = this.label.extent;
    const shares = this.range.map((value) => Math.min(1, Math.max(0, (value - least) / (greatest - least))));
    this.range.forEach((value, end) => {
      this.sliders[end].valueAsNumber = Math.round(shares[end] * STEPS);
      this.sliders[end].setAttribute("aria-valuetext", short(value));
      this.fields[end].set(value);
    });
    this.bar.style.left = `${100 * shares[0]}%`;
    this.bar.style.right = `${100 * (1 - shares[1])}%`;
    this.clear.hidden = !(this.label.name in this.actions.store.state.ranges);
  }
}
