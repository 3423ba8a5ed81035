/** What is selected: name, class, id and labels of one object, or the list of several. */

import type { Actions } from "../actions.ts";
import { el, iconButton, replace } from "../dom.ts";
import { count, wordText } from "../format.ts";
import { textOf } from "../labels.ts";
import { button } from "./command.ts";
import { absence } from "../selected.ts";
import { NARROW } from "./sheet.ts";

/** Objects listed of a large selection. */
const LISTED = 50;
/** Buttons for the chosen hit. */
const OF_HITS = ["copy-hit-id", "copy-hit-point", "copy-hit-t", "explain"];

export class Selection {
  readonly element = el("div", { class: "block selection", "data-test": "selection" });
  private readonly clear: HTMLElement;
  private readonly bar: HTMLElement;
  private readonly absence = el("p", { class: "note", role: "status", "data-test": "absence" });
  private readonly ids: HTMLElement;
  private readonly buttons: Record<string, HTMLElement> = {};

  constructor(private readonly actions: Actions) {
    this.clear = button(actions, "clear-selection");
    this.ids = iconButton("copy", "copy the ids", "copy-ids", () => this.copyIds());
    const several = actions.store.model.objects > 1;
    const names = ["zoom", "hide", "show", ...(several ? ["only"] : []), "unpickable", ...(several ? ["fade"] : [])];
    for (const name of [...names, ...OF_HITS]) this.buttons[name] = button(actions, name);
    const copy = el("span", { class: "note" }, "copy");
    const ofHits = el("span", { class: "bar", "data-test": "hit-actions" }, copy, ...OF_HITS.map((name) => this.buttons[name]));
    this.bar = el("div", { class: "bar" }, ...names.map((name) => this.buttons[name]), ofHits, this.ids);
    actions.store.watch(["answer"], () => (ofHits.hidden = !actions.store.state.answer));
    actions.store.watch(["selection"], () => this.draw());
    actions.store.watch(["selection", "hidden", "ranges", "cut"], () => this.drawAbsence());
  }

  private draw(): void {
    const { selection } = this.actions.store.state;
    this.element.hidden = !selection.length;
    if (!selection.length) return replace(this.element);
    const content = selection.length === 1 ? this.one(selection[0]) : this.several(selection);
    this.ids.hidden = selection.length < 2;
    replace(this.element, this.clear, ...content, this.absence, this.bar);
  }

  /** Say what of the selection is not in the picture. */
  private drawAbsence(): void {
    const { store } = this.actions;
    const { selection } = store.state;
    const isHidden = selection.every((object) => !store.visibility.shown[object]);
    this.buttons.hide.hidden = isHidden;
    this.buttons.show.hidden = !isHidden;
    const reasons = selection.slice(0, LISTED).map((object) => absence(store, object));
    this.element.classList.toggle("off", reasons.every(Boolean));
    const parts = [...new Set(reasons)].filter(Boolean).map((reason) => {
      const number = reasons.filter((one) => one === reason).length;
      return reasons.length === 1 ? reason : `${count(number)} ${reason}`;
    });
    this.absence.textContent = parts.length ? `Not in the picture: ${parts.join(", ")}` : "";
  }

  private one(object: number): HTMLElement[] {
    const { naming, store } = this.actions;
    const { labels, ids, names, classes } = store.model;
    const shown = labels.filter(({ name }) => name !== names && name !== classes);
    const values = shown.flatMap((label) => {
      const text = textOf(label, object);
      return text === null ? [] : [pair(label.name, text)];
    });
    const id = ids?.[object] ? [pair("id", ids[object], this.copyId(object))] : [];
    const number = `#${object}`;
    const named = naming.name(object) !== number;
    const title = el("h2", { "data-test": "selected-name" }, named ? naming.name(object) : naming.full(object));
    const text = named ? `${naming.class(object)} ${number}` : "details";
    const kind = el("small", { "data-test": "selected-class" }, text);
    if (!id.length && !values.length) return named ? [title, kind] : [title];
    const open = !matchMedia(NARROW).matches;
    const summary = el("summary", { "data-test": "selected-details" }, kind);
    return [title, el("details", { open }, summary, el("dl", {}, ...id, ...values))];
  }

  private copyId(object: number): HTMLElement {
    const { naming } = this.actions;
    return iconButton("copy", "copy the id", "copy-id", () => void this.actions.copy(naming.id(object), "id"));
  }

  private several(selection: number[]): HTMLElement[] {
    const { naming } = this.actions;
    const rows = selection.slice(0, LISTED).map((object) => {
      const name = naming.full(object);
      const drop = iconButton("close", `deselect ${name}`, "deselect", () => this.actions.toggleSelected(object));
      return el("li", { class: "leaf" }, el("span", { class: "text" }, name), drop);
    });
    const more = selection.length - LISTED;
    return [
      el("h2", { "data-test": "selected-name" }, `${count(selection.length)} selected`),
      el("ul", { class: "picked" }, ...rows, more > 0 && el("li", {}, `and ${count(more)} more`)),
    ];
  }

  private copyIds(): void {
    const { naming, store } = this.actions;
    void this.actions.copy(store.state.selection.map((object) => naming.id(object)).join("\n"), "ids");
  }
}

function pair(name: string, value: string, copy?: HTMLElement): HTMLElement {
  return el("div", {}, el("dt", {}, name), el("dd", { title: value }, wordText(value)), copy);
}
