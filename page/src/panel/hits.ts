/** The last ray: what it hits in order, with t, as numbers to copy, and the explanation of one hit. */

import type { Actions } from "../actions.ts";
import { checkBox, el, replace, textButton } from "../dom.ts";
import { drawExplanation } from "../explain.ts";
import { count, distanceTitle, exact, parsePoint, short, shortPoint } from "../format.ts";
import { chosenHit, explainedHit } from "../selected.ts";
import { length } from "../stage/vec.ts";
import type { Answer, Hit } from "../types.ts";
import { button } from "./command.ts";
import { VirtualTable, type Column } from "./table.ts";

/** Width of a column of numbers of six digits. */
const NUMBER = 62;

export class Hits {
  readonly element: HTMLElement;
  private readonly summary = el("p", { class: "summary", role: "status", "data-test": "hits-summary" });
  private readonly ray = el("p", { class: "note line", "data-test": "hits-ray" });
  private readonly scale = el("p", { class: "note", "data-test": "hits-unit" });
  private readonly list = el("div", { class: "fill" });
  private readonly copies: HTMLElement[];
  private readonly why: HTMLElement;
  private readonly bar: HTMLElement;
  private readonly explanation = el("div", { class: "explanation", "data-test": "explanation", hidden: true });
  private table: VirtualTable | null = null;
  private unit: boolean | null = null;

  constructor(private readonly actions: Actions) {
    const { store, caster } = actions;
    this.copies = this.copyButtons();
    this.why = button(actions, "explain");
    const forget = button(actions, "clear-ray");
    this.bar = el("div", { class: "bar", "data-test": "hit-actions" }, ...this.copies, this.why, forget);
    const reason = caster.reason !== null && !caster.live;
    const note = reason && el("p", { class: "note", "data-test": "no-picks" }, caster.reason);
    const sight = checkBox("Line of sight between two clicks", "sight", (on) => actions.setSight(on));
    const parts = [
      note,
      !reason && sight.node,
      this.summary,
      this.ray,
      this.scale,
      this.list,
      this.bar,
      this.explanation,
      !reason && typedRay(actions),
    ];
    this.element = el("div", { class: "panel hits" }, ...parts);
    store.watch(["answer", "sight"], () => this.draw());
    store.watch(["selection", "contact", "answer", "hidden", "unpickable", "ranges"], () => this.drawChosen());
  }

  private draw(): void {
    const { answer, sight } = this.actions.store.state;
    this.summary.textContent = sight?.length ? "Click the other end of the line of sight" : summaryOf(answer);
    this.ray.textContent = answer ? rayText(answer) : "";
    this.ray.title = answer ? `origin ${exact(answer.ray.origin)}; direction ${exact(answer.ray.direction)}` : "";
    const size = answer ? length(answer.ray.direction) : 1;
    this.scale.textContent = isUnit(size) ? "" : `t is in lengths of the direction; |d| = ${short(size)} ${this.actions.store.model.unit}`;
    this.list.hidden = !answer?.hits.length;
    if (answer) this.useTable(isUnit(size));
    this.table?.fill(Uint32Array.from(answer?.hits ?? [], (_, at) => at));
  }

  /** The table of rays of length 1 has no column of distances. */
  private useTable(unit: boolean): void {
    if (this.unit === unit) return;
    this.unit = unit;
    const { store } = this.actions;
    this.table = new VirtualTable({
      label: "hits of the last ray",
      test: "hits",
      columns: this.columns(unit),
      choose: (row, event) => this.choose(row, event),
      object: (row) => store.state.answer!.hits[row].object,
      chosen: (row) => store.state.selection.includes(store.state.answer!.hits[row].object),
    });
    replace(this.list, this.table.element);
  }

  private choose(row: number, event: MouseEvent | KeyboardEvent): void {
    const hit = this.actions.store.state.answer!.hits[row];
    if (event.ctrlKey || event.metaKey || event.shiftKey) this.actions.toggleSelected(hit.object);
    else this.actions.choose(hit);
  }

  private columns(unit: boolean): Column[] {
    const { naming, store } = this.actions;
    const hit = (row: number): Hit => store.state.answer!.hits[row];
    const name = (row: number) => naming.full(hit(row).object);
    const numeric = (title: string, value: (hit: Hit) => number): Column => {
      return {
        title,
        width: NUMBER,
        numeric: true,
        text: (row) => short(value(hit(row))),
        key: (row) => value(hit(row)),
      };
    };
    const distance = (one: Hit) => one.t * length(store.state.answer!.ray.direction);
    return [
      { title: "object", width: 1, text: name, key: name },
      numeric("t", ({ t }) => t),
      ...(unit ? [] : [numeric(distanceTitle(store.model), distance)]),
      numeric("t_enter", ({ tEnter }) => tEnter),
      numeric("t_exit", ({ tExit }) => tExit),
    ];
  }

  /** An explanation belongs to one pair; the next one is explained when requested. */
  private drawChosen(): void {
    const { store } = this.actions;
    const [chosen, pair] = [chosenHit(store), explainedHit(store)];
    this.bar.hidden = !store.state.answer;
    for (const button of this.copies) button.hidden = chosen === null;
    this.why.hidden = pair === null;
    this.why.textContent = pair && Number.isNaN(pair.t) ? "Explain the miss" : "Explain";
    replace(this.explanation);
    this.explanation.hidden = true;
    this.table?.draw();
    if (chosen) this.table?.reveal(store.state.answer!.hits.indexOf(chosen));
  }

  private copyButtons(): HTMLElement[] {
    const { actions } = this;
    const copy = (what: "id" | "point" | "t") =>
      textButton(what, `copy-hit-${what}`, () => actions.copyHit(what), `copy the ${what} of the chosen hit`);
    return [el("span", { class: "note" }, "copy"), copy("id"), copy("point"), copy("t")];
  }

  /** Show how the hit or miss follows from the numbers of the ray and the primitive. */
  explain(): void {
    const { store } = this.actions;
    const { answer } = store.state;
    const pair = explainedHit(store);
    if (!answer || !pair) return;
    replace(this.explanation, drawExplanation(store.model, answer.ray, pair));
    this.explanation.hidden = false;
    this.explanation.dataset.of = String(pair.object);
    this.explanation.scrollIntoView({ block: "nearest" });
  }
}

function summaryOf(answer: Answer | null): string {
  if (!answer) return "Click or tap the scene: a ray is cast through that pixel.";
  const { ends, hits, total } = answer;
  if (!hits.length) return ends ? "Nothing lies between" : "Nothing is hit";
  if (total > hits.length) return `The first ${count(hits.length)} of ${count(total)} hits`;
  return (total === 1 ? "1 hit" : `${count(total)} hits`) + (ends ? " between" : "");
}

function rayText({ ray, row }: Answer): string {
  const named = row === null ? "" : `Ray ${count(row)}: `;
  return `${named}from ${shortPoint(ray.origin)} along ${shortPoint(ray.direction)}`;
}

/** Unit directions are rounded: their lengths are 1 but for some units in the last place. */
function isUnit(length: number): boolean {
  return Math.abs(length - 1) < 1e-9;
}

/** A ray whose numbers are typed. */
function typedRay(actions: Actions): HTMLElement {
  const field = (name: string) =>
    el("input", { type: "text", "aria-label": `${name} of the ray`, "data-test": `ray-${name}` });
  const [origin, direction] = [field("origin"), field("direction")];
  origin.placeholder = "origin: x, y, z";
  direction.placeholder = "direction: x, y, z";
  const cast = (event: Event) => {
    event.preventDefault();
    const [from, along] = [parsePoint(origin.value), parsePoint(direction.value)];
    if (from && along) void actions.castTyped(from, along);
    else actions.notice.error("Origin and direction are three numbers each, such as 0, 0, 1.5");
  };
  // Not when the shown ray is cast again: what was typed since stays.
  actions.store.watch(["rayCount"], () => {
    const { answer } = actions.store.state;
    if (!answer) return;
    origin.value = exact(answer.ray.origin);
    direction.value = exact(answer.ray.direction);
  });
  const button = el("button", { type: "submit", "data-test": "cast" }, "Cast");
  const form = el("form", { class: "typed", onsubmit: cast }, origin, direction, button);
  return el("details", {}, el("summary", { "data-test": "typed-ray" }, "Cast a ray by its numbers"), form);
}
