/** What is selected: name, class, id and labels of one object, or the list of several. */

import type { Actions } from "../actions.ts";
import { checkBox, el, iconButton, replace, textButton } from "../dom.ts";
import { count } from "../format.ts";
import { textOf } from "../labels.ts";
import { NARROW } from "./sheet.ts";

/** Objects listed of a large selection. */
const LISTED = 50;

export class Selection {
  readonly element = el("div", { class: "block selection", "data-test": "selection" });
  private readonly fade;

  constructor(private readonly actions: Actions) {
    this.fade = checkBox("Fade", "fade", (faded) => actions.store.set({ faded }));
    this.fade.node.title = "the others are translucent, so that what is inside shows";
    actions.store.watch(["selection", "unpickable"], () => this.draw());
    actions.store.watch(["faded"], () => this.fade.set(actions.store.state.faded));
  }

  private draw(): void {
    const { selection } = this.actions.store.state;
    this.element.hidden = !selection.length;
    if (!selection.length) return replace(this.element);
    const content = selection.length === 1 ? this.one(selection[0]) : this.several(selection);
    const clear = iconButton("close", "select nothing (Esc)", "clear-selection", () => this.actions.select([]));
    replace(this.element, clear, ...content, this.buttons(selection));
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
    const kind = el(
      "small",
      { "data-test": "selected-class" },
      named ? `${naming.class(object)} ${number}` : "details",
    );
    if (!id.length && !values.length) return named ? [title, kind] : [title];
    const open = !matchMedia(NARROW).matches;
    const summary = el("summary", { "data-test": "selected-details" }, kind);
    return [title, el("details", { open }, summary, el("dl", {}, ...id, ...values))];
  }

  private copyId(object: number): HTMLElement {
    return iconButton(
      "copy",
      "copy the id",
      "copy-id",
      () => void this.actions.copy(this.actions.naming.id(object), "id"),
    );
  }

  private several(selection: number[]): HTMLElement[] {
    const { naming } = this.actions;
    const rows = selection.slice(0, LISTED).map((object) => {
      const drop = iconButton("close", `deselect ${naming.full(object)}`, "deselect", () =>
        this.actions.toggleSelected(object),
      );
      return el("li", { class: "leaf" }, el("span", { class: "text" }, naming.full(object)), drop);
    });
    const more = selection.length - LISTED;
    return [
      el("h2", { "data-test": "selected-name" }, `${count(selection.length)} selected`),
      el("ul", { class: "picked" }, ...rows, more > 0 && el("li", {}, `and ${count(more)} more`)),
    ];
  }

  private buttons(selection: number[]): HTMLElement {
    const { actions } = this;
    const { unpickable } = actions.store.visibility;
    const several = actions.store.model.objects > 1;
    const locked = selection.every((object) => unpickable[object]);
    const through = textButton(locked ? "Rays hit" : "Rays pass", "unpickable", () =>
      actions.toggleSelectionPickable(),
    );
    through.title = locked
      ? "let rays hit the selection again (P)"
      : "rays pass through the selection, which stays drawn (P)";
    const ids = () => void actions.copy(selection.map((object) => actions.naming.id(object)).join("\n"), "ids");
    return el(
      "div",
      { class: "bar" },
      textButton("Zoom", "zoom", () => actions.zoomTo(selection), "zoom to the selection, the others faded (Z)"),
      textButton("Hide", "hide", () => actions.hideSelection(), "hide the selection (H)"),
      several && textButton("Only", "only", () => actions.isolateSelection(), "hide all others (I)"),
      through,
      several && this.fade.node,
      selection.length > 1 && iconButton("copy", "copy the ids", "copy-ids", ids),
    );
  }
}

function pair(name: string, value: string, copy?: HTMLElement): HTMLElement {
  return el("div", {}, el("dt", {}, name), el("dd", { title: value }, value), copy);
}
