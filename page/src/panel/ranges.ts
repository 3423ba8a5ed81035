/** A slider with two ends for each number label: what is outside is hidden. */

import type { Actions } from "../actions.ts";
import { el, iconButton, numberField } from "../dom.ts";
import { short } from "../format.ts";
import { numberLabels } from "../labels.ts";
import type { PageState } from "../store.ts";

const STEPS = 1000;
type Range = [number, number];

/** Two numbers that are set within an extent; null is all of it. */
interface Setting {
  name: string;
  /** What is shown, if not the name. */
  title?: string;
  /** The start of the data-test of its elements. */
  test: string;
  extent: Range;
  /** The part of the state that has them. */
  part: keyof PageState;
  get: () => Range | null;
  set: (range: Range | null) => void;
}

/** The sliders of a scene; null if it has no number labels. */
export function ranges(actions: Actions): HTMLElement | null {
  const labels = numberLabels(actions.store.model);
  if (!labels.length) return null;
  const rows = labels.map((label) => rangeFilter(actions, label).element);
  return el("div", { class: "block", "data-test": "ranges" }, el("h2", {}, "Ranges"), ...rows);
}

/** A slider that sets the range of a label or a field of points. */
export function rangeFilter(actions: Actions, label: Pick<Setting, "name" | "extent" | "title">): DoubleSlider {
  const get = () => actions.store.state.ranges[label.name] ?? null;
  const set = (range: Range | null) => actions.setRange(label.name, range);
  return new DoubleSlider(actions, { ...label, test: `range-${label.name}`, part: "ranges", get, set });
}

/** A slider with two ends, a field for each, and a button that sets all of the extent. */
export class DoubleSlider {
  readonly element: HTMLElement;
  private readonly sliders: HTMLInputElement[];
  private readonly fields: ReturnType<typeof numberField>[];
  private readonly bar = el("i", { class: "between" });
  private readonly clear: HTMLButtonElement;

  constructor(
    actions: Actions,
    private readonly setting: Setting,
  ) {
    const { name, test, extent, part } = setting;
    this.sliders = ["least", "greatest"].map((end, at) => this.slider(`${end} ${name}`, `${test}-${at}`));
    this.fields = ["least", "greatest"].map((end, at) =>
      numberField(`${end} ${name}`, `${test}-field-${at}`, (value) => this.set(at, value)),
    );
    this.clear = iconButton("close", `any ${name}`, `${test}-clear`, () => setting.set(null));
    this.element = el(
      "div",
      { class: "range", role: "group", "aria-label": name },
      el("span", { class: "text", title: `${name}: ${extent.map(short).join(" to ")}` }, setting.title ?? name),
      el("div", { class: "double" }, this.bar, ...this.sliders),
      ...this.fields.map(({ input }) => input),
      this.clear,
    );
    actions.store.watch([part], () => this.draw());
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
    const [low, high] = this.setting.extent;
    if (step <= 0) return low;
    return step >= STEPS ? high : low + ((high - low) * step) / STEPS;
  }

  private get range(): Range {
    return this.setting.get() ?? this.setting.extent;
  }

  /** Move one end; it does not pass the other. */
  private set(end: number, value: number): void {
    const [low, high] = this.range;
    const range: Range = end === 0 ? [Math.min(value, high), high] : [low, Math.max(value, low)];
    const [least, greatest] = this.setting.extent;
    this.setting.set(range[0] <= least && range[1] >= greatest ? null : range);
    this.draw();
  }

  private draw(): void {
    const [least, greatest] = this.setting.extent;
    const shares = this.range.map((value) => Math.min(1, Math.max(0, (value - least) / (greatest - least || 1))));
    this.range.forEach((value, end) => {
      this.sliders[end].valueAsNumber = Math.round(shares[end] * STEPS);
      this.sliders[end].setAttribute("aria-valuetext", short(value));
      this.fields[end].set(value);
    });
    this.bar.style.left = `${100 * shares[0]}%`;
    this.bar.style.right = `${100 * (1 - shares[1])}%`;
    this.clear.hidden = this.setting.get() === null;
  }
}
