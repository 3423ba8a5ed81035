/** Section planes: one on each axis and a free one; they limit the rays of clicks too. */

import type { Actions } from "../actions.ts";
import { checkBox, el, iconButton, textButton } from "../dom.ts";
import { exact, parsePoint, shortPoint } from "../format.ts";
import { along, AXES, diagonal, unit } from "../stage/vec.ts";
import type { Vec3 } from "../types.ts";
import { button } from "./command.ts";
import { DoubleSlider } from "./ranges.ts";

const STEPS = 1000;

export function cutPanel(actions: Actions): HTMLElement {
  const note = el("p", { class: "note" }, "What is cut away is not drawn, and rays of clicks pass it.");
  const bar = el("div", { class: "bar" }, button(actions, "section-box"), button(actions, "cut-none"));
  const planes = [...axisSliders(actions), new FreeCut(actions).element];
  return el("div", { class: "panel cut" }, storeyRow(actions), ...planes, bar, note);
}

/** Two planes on each axis on which the scene has a size. */
function axisSliders(actions: Actions): HTMLElement[] {
  const { store } = actions;
  const [low, high] = store.model.bounds;
  return AXES.flatMap((axis, a) => {
    const extent: [number, number] = [low[a], high[a]];
    const get = () => (store.state.cut.some((plane) => plane.axis === axis) ? store.sectionOf(axis) : null);
    const set = (range: [number, number] | null) => actions.cutTo(axis, range);
    const setting = { name: axis, test: `cut-${axis}`, extent, part: "cut" as const, get, set };
    return low[a] < high[a] ? [new DoubleSlider(actions, setting).element] : [];
  });
}

/** A button for the floor plan of each storey, and one for all storeys; null where there are none. */
function storeyRow(actions: Actions): HTMLElement | null {
  const { store, storeys } = actions;
  if (!storeys.length) return null;
  const buttons = [null, ...storeys].map((storey) => {
    const name = storey?.name ?? "all";
    const help = storey ? `floor plan of ${name} (keys , and .)` : "the whole building";
    const made = textButton(name, `storey-${name}`, () => actions.showStorey(storey), help);
    store.watch(["cut"], () => made.setAttribute("aria-pressed", String(actions.storey === storey)));
    return made;
  });
  return el("div", { class: "bar", role: "group", "aria-label": "storey" }, el("span", {}, "Storey"), ...buttons);
}

/** A plane of any direction: by its point and normal, by a slider along the normal, or dragged in the scene. */
class FreeCut {
  readonly element: HTMLElement;
  private readonly on;
  private readonly slider: HTMLInputElement;
  private readonly point: HTMLInputElement;
  private readonly normal: HTMLInputElement;
  private readonly rest: HTMLElement;
  /** The point from which the slider moves the plane. */
  private from: Vec3 | null = null;

  constructor(private readonly actions: Actions) {
    this.on = checkBox("free", "cut-free", (on) => actions.setFreeCut({ on }));
    this.slider = el("input", {
      type: "range",
      min: -STEPS,
      max: STEPS,
      "aria-label": "move the free plane along its normal",
      "data-test": "cut-free-slider",
      oninput: () => this.slide(),
      onchange: () => this.centre(),
    });
    [this.point, this.normal] = [this.field("point"), this.field("normal")];
    const title = "turn the plane across the line of sight";
    const across = textButton("Face the camera", "cut-free-camera", () => this.face(), title);
    const fields = [el("label", {}, "point ", this.point), el("label", {}, "normal ", this.normal), across];
    this.rest = el("div", { class: "free" }, ...fields);
    const flip = () => actions.setFreeCut({ on: true, flip: !actions.store.freePlane?.flip });
    const other = iconButton("flip", "cut away the other side of the free plane", "cut-free-flip", flip);
    const head = el("div", { class: "plane" }, this.on.node, this.slider, other);
    this.element = el("div", { role: "group", "aria-label": "free cut" }, head, this.rest);
    actions.store.watch(["cut"], () => this.draw());
  }

  private field(name: "point" | "normal"): HTMLInputElement {
    const change = () => this.type(name);
    const attributes = { type: "text", "aria-label": `${name} of the free plane`, "data-test": `cut-free-${name}` };
    return el("input", { ...attributes, onchange: change });
  }

  private type(name: "point" | "normal"): void {
    const value = parsePoint(this[name].value);
    const valid = value && (name === "point" || value.some(Boolean));
    if (valid) this.actions.setFreeCut({ on: true, [name]: value });
    else this.actions.notice.error(`The ${name} of a plane is three numbers, such as 0, 0, 1`);
    this.centre();
  }

  private face(): void {
    this.actions.faceCut();
    this.centre();
  }

  private slide(): void {
    const plane = this.actions.store.freePlane ?? this.actions.setFreeCut({ on: true });
    this.from ??= plane.point!;
    const [lower, upper] = this.actions.store.model.bounds;
    const distance = (diagonal({ lower, upper }) / 2) * (this.slider.valueAsNumber / STEPS);
    this.actions.setFreeCut({ on: true, point: along(this.from, unit(plane.normal!), distance) });
  }

  private centre(): void {
    this.from = null;
    this.slider.valueAsNumber = 0;
  }

  private draw(): void {
    const plane = this.actions.store.freePlane;
    this.on.set(plane?.on ?? false);
    this.rest.hidden = !plane?.on;
    if (!plane) return;
    this.point.value = exact(plane.point!);
    this.point.title = shortPoint(plane.point!);
    this.normal.value = exact(plane.normal!);
  }
}
