/** The last ray: the objects that it hits in order, each with its contacts, and the explanation of one. */

import type { Actions } from "../actions.ts";
import { checkBox, el, iconButton, replace } from "../dom.ts";
import { drawExplanation } from "../explain.ts";
import { count, distanceTitle, exact, parsePoint, short, shortPoint } from "../format.ts";
import { KINDS } from "../labels.ts";
import { hitRows, hitsByObject, type HitRow, type ObjectHits } from "../object_hits.ts";
import { chosenHit, explainedHit } from "../selected.ts";
import { length } from "../stage/vec.ts";
import type { Answer, Hit } from "../types.ts";
import { button } from "./command.ts";
import { VirtualTable, type Column } from "./table.ts";

/** Widths of a column of numbers of six digits, and of one of counts. */
const NUMBER = 62;
const COUNT = 34;

export class Hits {
  readonly element: HTMLElement;
  /** Where the card of the selection is on a phone: after the list. */
  readonly below = el("div", {});
  private readonly summary = el("span", { class: "summary", role: "status", "data-test": "hits-summary" });
  private readonly forget: HTMLElement;
  private readonly ray = el("p", { class: "note line", "data-test": "hits-ray" });
  private readonly scale = el("p", { class: "note", "data-test": "hits-unit" });
  private readonly list = el("div", { class: "fill" });
  private readonly explanation = el("div", { class: "explanation", "data-test": "explanation", hidden: true });
  private table: VirtualTable | null = null;
  /** The columns of the table that is there. */
  private layout: Layout | null = null;
  private objects: ObjectHits[] = [];
  private rows: HitRow[] = [];
  /** Objects whose contacts are listed. */
  private readonly open = new Set<number>();

  constructor(private readonly actions: Actions) {
    const { store, caster } = actions;
    this.forget = button(actions, "clear-ray");
    const reason = caster.reason !== null && !caster.live;
    const note = reason && el("p", { class: "note", "data-test": "no-picks" }, caster.reason);
    const sight = checkBox("Line of sight between two clicks", "sight", (on) => actions.setSight(on));
    const head = el("div", { class: "bar" }, this.summary, this.forget);
    const other = reason ? [] : [sight.node, typedRay(actions)];
    const parts = [note, head, this.list, this.below, this.explanation, this.ray, this.scale, ...other];
    this.element = el("div", { class: "panel hits" }, ...parts);
    store.watch(["sight"], () => sight.set(store.state.sight !== null));
    store.watch(["answer", "sight"], () => this.draw());
    store.watch(["selection", "contact", "answer"], () => this.drawChosen());
    store.changed(["hidden", "unpickable", "ranges"], () => this.drawChosen());
  }

  private draw(): void {
    const { answer, sight } = this.actions.store.state;
    this.objects = hitsByObject(answer?.hits ?? []);
    this.summary.textContent = sight?.length ? "Click the other end of the line of sight" : summaryOf(answer, this.objects);
    this.forget.hidden = !answer;
    this.ray.textContent = answer ? rayText(answer) : "";
    this.ray.title = answer ? `origin ${exact(answer.ray.origin)}; direction ${exact(answer.ray.direction)}` : "";
    const size = answer ? length(answer.ray.direction) : 1;
    this.scale.textContent = isUnit(size) ? "" : `t is in lengths of the direction; |d| = ${short(size)} ${this.actions.store.model.unit}`;
    this.list.hidden = !this.objects.length;
    if (answer) this.useTable(layoutOf(this.objects, isUnit(size)));
    this.fill();
  }

  private fill(): void {
    this.rows = hitRows(this.objects, this.open);
    this.list.style.setProperty("--rows", String(this.rows.length));
    this.table?.fill(Uint32Array.from(this.rows, (_, at) => at));
  }

  private useTable(layout: Layout): void {
    if (JSON.stringify(layout) === JSON.stringify(this.layout)) return;
    this.layout = layout;
    this.table = new VirtualTable({
      label: "objects that the last ray hits",
      test: "hits",
      columns: this.columns(layout),
      choose: (row, event) => this.choose(this.rows[row], event),
      chosen: (row) => this.isChosen(this.rows[row]),
      object: (row) => this.rows[row].of.object,
    });
    replace(this.list, this.table.element);
  }

  private isChosen({ of, contact }: HitRow): boolean {
    const { store } = this.actions;
    return contact ? contact === chosenHit(store) : store.state.selection.includes(of.object);
  }

  private choose({ of, contact }: HitRow, event: MouseEvent | KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.shiftKey) this.actions.toggleSelected(of.object);
    else this.actions.choose(contact ?? of.hits[0]);
  }

  private flip(object: number): void {
    if (!this.open.delete(object)) this.open.add(object);
    this.fill();
  }

  private columns({ unit, inside, several }: Layout): Column[] {
    const { store } = this.actions;
    const numeric = (title: string, value: (row: HitRow) => number, width = NUMBER): Column => {
      const text = (row: number) => (Number.isNaN(value(this.rows[row])) ? "" : short(value(this.rows[row])));
      return { title, width, numeric: true, text, key: (row) => value({ ...this.rows[row], contact: null }) };
    };
    const first = ({ of, contact }: HitRow) => (contact ?? of.hits[0]).t;
    const distance = (row: HitRow) => first(row) * length(store.state.answer!.ray.direction);
    return [
      this.nameColumn(several),
      numeric("t", first),
      ...(unit ? [] : [numeric(distanceTitle(store.model), distance)]),
      ...(inside ? [numeric("t_enter", ({ of, contact }: HitRow) => contact?.tEnter ?? of.enter)] : []),
      numeric("t_exit", ({ of, contact }) => contact?.tExit ?? of.exit),
      ...(several ? [{ ...numeric("n", countOf, COUNT), tip: "number of contacts" }] : []),
    ];
  }

  private nameColumn(several: boolean): Column {
    const { naming } = this.actions;
    const name = ({ of }: HitRow) => naming.full(of.object);
    return {
      title: "object",
      width: 1,
      text: (row) => (this.rows[row].contact ? this.primitiveName(this.rows[row].contact!) : name(this.rows[row])),
      key: (row) => name(this.rows[row]),
      lead: several ? (row) => this.toggle(this.rows[row]) : undefined,
    };
  }

  private primitiveName({ geometry, primitive }: Hit): string {
    const { type } = this.actions.store.model.geometries[geometry];
    return `${type === "mesh" ? "triangle" : KINDS[type]} ${primitive}`;
  }

  /** The button that lists the contacts of an object; of a contact, the room of it. */
  private toggle({ of, contact }: HitRow): HTMLElement {
    if (contact || of.hits.length < 2) return el("span", { class: contact ? "lead contact" : "lead" });
    const flip = (event: MouseEvent) => {
      event.stopPropagation();
      this.flip(of.object);
    };
    const made = iconButton("right", `contacts with ${this.actions.naming.full(of.object)}`, "hit-expand", flip);
    made.className = "bare lead";
    made.setAttribute("aria-expanded", String(this.open.has(of.object)));
    return made;
  }

  /** An explanation belongs to one pair; the next one is explained when requested. */
  private drawChosen(): void {
    const chosen = chosenHit(this.actions.store);
    replace(this.explanation);
    this.explanation.hidden = true;
    this.table?.draw();
    const at = this.rows.findIndex(({ of, contact }) => (contact ? contact === chosen : of.object === chosen?.object));
    if (at >= 0) this.table?.reveal(at);
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

/** Which columns say something: distances, times of entry before the first contact, numbers of contacts. */
interface Layout {
  unit: boolean;
  inside: boolean;
  several: boolean;
}

function layoutOf(objects: ObjectHits[], unit: boolean): Layout {
  const inside = objects.some(({ enter, hits }) => enter !== hits[0].t);
  return { unit, inside, several: objects.some(({ hits }) => hits.length > 1) };
}

const countOf = ({ of, contact }: HitRow) => (contact ? NaN : of.hits.length);

function summaryOf(answer: Answer | null, objects: ObjectHits[]): string {
  if (!answer) return "Click or tap the scene: a ray is cast through that pixel.";
  const { ends, hits, total } = answer;
  if (!hits.length) return ends ? "Nothing lies between" : "Nothing is hit";
  const of = objects.length === 1 ? "1 object" : `${count(objects.length)} objects`;
  const between = ends ? " between" : "";
  if (total > hits.length) return `${of}${between} in the first ${count(hits.length)} of ${count(total)} contacts`;
  return total === objects.length ? `${of}${between}` : `${of}${between}, ${count(total)} contacts`;
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
