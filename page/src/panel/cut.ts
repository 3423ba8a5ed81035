/** Section planes: one on each axis and a free one; they limit the rays of clicks too. */

import type { Actions } from "../actions.ts";
import { checkBox, el, iconButton, numberField, textButton } from "../dom.ts";
import { exact, parsePoint, shortPoint } from "../format.ts";
import { storeysOf } from "../section.ts";
import { along, AXES, diagonal, unit } from "../stage/vec.ts";
import type { Axis, CutPlane, Vec3 } from "../types.ts";
import { button } from "./command.ts";
import { DoubleSlider } from "./ranges.ts";

const STEPS = 1000;

export function cutPanel(actions: Actions): HTMLElement {
  const axes = (["x", "y", "z"] as const).map((axis) => new AxisCut(actions, axis).element);
  const note = el("p", { class: "note" }, "What is cut away is not drawn, and rays of clicks pass it.");
  const bar = el("div", { class: "bar" }, button(actions, "box"), button(actions, "cut-none"));
  const planes = [...axes, new FreeCut(actions).element];
  return el("div", { class: "panel cut" }, storeyRow(actions), ...planes, bar, boxSliders(actions), note);
}

/** A button for the floor plan of each storey, and one for all storeys; null where there are none. */
function storeyRow(actions: Actions): HTMLElement | null {
  const { store } = actions;
  const storeys = storeysOf(store.model);
  if (!storeys.length) return null;
  const buttons = [null, ...storeys.map(({ name }) => name)].map((storey) => {
    const help = storey === null ? "the whole building" : `floor plan of ${storey}`;
    const made = textButton(storey ?? "all", `storey-${storey ?? "all"}`, () => actions.showStorey(storey), help);
    store.watch(["storey"], () => made.setAttribute("aria-pressed", String(store.state.storey === storey)));
    return made;
  });
  return el("div", { class: "bar", role: "group", "aria-label": "storey" }, el("span", {}, "Storey"), ...buttons);
}

/** The faces of the section box: two on each axis. */
function boxSliders(actions: Actions): HTMLElement {
  const { store } = actions;
  const [low, high] = store.model.bounds;
  const rows = AXES.map((axis, a) => {
    const extent: [number, number] = [low[a], high[a]];
    const get = (): [number, number] | null => store.state.box && [store.state.box[0][a], store.state.box[1][a]];
    const set = (ends: [number, number] | null) => actions.setBox(axis, ends ?? extent);
    return new DoubleSlider(actions, { name: axis, test: `box-${axis}`, extent, part: "box", get, set }).element;
  });
  const sliders = el("div", { class: "block box", role: "group", "aria-label": "section box" }, ...rows);
  store.watch(["box"], () => (sliders.hidden = !store.state.box));
  return sliders;
}

function flipButton(actions: Actions, axis: CutPlane["axis"]): HTMLElement {
  const flip = () => actions.setCut(axis, { on: true, flip: !actions.store.cutOf(axis)?.flip });
  return iconButton("flip", `cut away the other side of ${axis}`, `cut-${axis}-flip`, flip);
}

class AxisCut {
  readonly element: HTMLElement;
  private readonly on;
  private readonly slider: HTMLInputElement;
  private readonly field;

  constructor(
    private readonly actions: Actions,
    private readonly axis: Axis,
  ) {
    this.on = checkBox(axis, `cut-${axis}`, (on) => actions.setCut(axis, { on }));
    this.on.input.setAttribute("aria-label", `cut along ${axis}`);
    this.field = numberField(`${axis} of the cut`, `cut-${axis}-at`, (at) => actions.setCut(axis, { on: true, at }));
    this.slider = el("input", {
      type: "range",
      min: 0,
      max: STEPS,
      "aria-label": `${axis} of the cut, slider`,
      "data-test": `cut-${axis}-slider`,
      oninput: () => this.slide(),
    });
    const parts = [this.on.node, this.slider, this.field.input, flipButton(actions, axis)];
    this.element = el("div", { class: "plane", role: "group", "aria-label": `cut along ${axis}` }, ...parts);
    actions.store.watch(["cut"], () => this.draw());
  }

  private get ends(): [number, number] {
    const at = "xyz".indexOf(this.axis);
    const [low, high] = this.actions.store.model.bounds;
    return [low[at], high[at]];
  }

  private slide(): void {
    const [low, high] = this.ends;
    const at = low + ((high - low) * this.slider.valueAsNumber) / STEPS;
    this.actions.setCut(this.axis, { on: true, at: Number(at.toPrecision(12)) });
  }

  private draw(): void {
    const [low, high] = this.ends;
    const plane = this.actions.store.cutOf(this.axis);
    const at = plane?.at ?? (low + high) / 2;
    this.on.set(plane?.on ?? false);
    this.slider.valueAsNumber = Math.round((STEPS * (at - low)) / (high - low || 1));
    this.field.set(at);
    this.element.classList.toggle("off", !plane?.on);
  }
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
    this.on = checkBox("free", "cut-free", (on) => actions.setCut("free", { on }));
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
    const head = el("div", { class: "plane" }, this.on.node, this.slider, flipButton(actions, "free"));
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
    if (valid) this.actions.setCut("free", { on: true, [name]: value });
    else this.actions.notice.error(`The ${name} of a plane is three numbers, such as 0, 0, 1`);
    this.centre();
  }

  private face(): void {
    this.actions.faceCut();
    this.centre();
  }

  private slide(): void {
    const plane = this.actions.store.cutOf("free") ?? this.actions.setCut("free", { on: true });
    this.from ??= plane.point!;
    const [lower, upper] = this.actions.store.model.bounds;
    const distance = (diagonal({ lower, upper }) / 2) * (this.slider.valueAsNumber / STEPS);
    this.actions.setCut("free", { on: true, point: along(this.from, unit(plane.normal!), distance) });
  }

  private centre(): void {
    this.from = null;
    this.slider.valueAsNumber = 0;
  }

  private draw(): void {
    const plane = this.actions.store.cutOf("free");
    this.on.set(plane?.on ?? false);
    this.rest.hidden = !plane?.on;
    if (!plane) return;
    this.point.value = exact(plane.point!);
    this.point.title = shortPoint(plane.point!);
    this.normal.value = exact(plane.normal!);
  }
}
