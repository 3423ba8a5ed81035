/** The field that finds objects, with its list of results. */

import type { Actions } from "../actions.ts";
import { el, later, replace, textButton } from "../dom.ts";
import { find } from "../find.ts";
import { count } from "../format.ts";
import { labelOf, textOf } from "../labels.ts";

/** Results listed. */
const LIMIT = 200;
const PAUSE = 120;

export class Search {
  readonly element: HTMLElement;
  readonly input: HTMLInputElement;
  private readonly results = el("div", { class: "results", "data-test": "results", hidden: true });
  private found: number[] = [];

  constructor(private readonly actions: Actions) {
    const search = later(PAUSE, () => this.search());
    this.input = el("input", {
      type: "search",
      placeholder: "Find by name, id, number, label",
      title: 'A name, id, number or label value; also a comparison, such as "height > 3" (/)',
      "aria-label": "find objects",
      "data-test": "find",
      oninput: search,
      onfocus: () => this.search(),
      onkeydown: (event) => this.key(event),
    });
    const left = (event: FocusEvent) => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.results.hidden = true;
    };
    this.element = el("div", { class: "find", role: "search", onfocusout: left }, this.input, this.results);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Enter") this.zoomFirst();
    else if (event.key === "Escape") this.close();
    else if (event.key === "ArrowDown") this.results.querySelector("button")?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private zoomFirst(): void {
    this.search();
    this.zoomTo(this.found.slice(0, 1));
  }

  /** Select and zoom to results; the list closes. */
  private zoomTo(objects: number[]): void {
    if (!objects.length) return;
    this.actions.zoomTo(objects);
    this.results.hidden = true;
  }

  private close(): void {
    this.input.value = "";
    this.search();
    this.input.blur();
  }

  private search(): void {
    this.found = find(this.actions.store.model, this.input.value);
    const total = this.found.length;
    const objects = this.found.slice(0, LIMIT);
    this.results.hidden = !this.input.value.trim();
    const listed = total > LIMIT ? `, the first ${LIMIT} listed` : "";
    const text = el("span", { class: "total", role: "status" }, total ? `${count(total)} found${listed}` : "nothing found");
    const title = `select and zoom to all ${count(total)}`;
    const all = textButton("Select these", "select-found", () => this.zoomTo(this.found), title);
    const bar = el("div", { class: "bar" }, text, total > 1 && all);
    const items = objects.map((object) => el("li", {}, this.result(object)));
    replace(this.results, bar, el("ul", { class: "found" }, ...items));
  }

  private result(object: number): HTMLElement {
    const { naming, store } = this.actions;
    const level = labelOf(store.model, store.model.levels);
    const shown = store.visibility.shown[object];
    const where = [!shown && "hidden", naming.class(object), level && textOf(level, object)].filter(Boolean).join(" · ");
    const choose = (event: MouseEvent) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) this.actions.toggleSelected(object);
      else this.zoomTo([object]);
    };
    const title = `zoom to ${naming.full(object)}`;
    const attributes = { type: "button", "data-test": "result", "data-object": object, title, class: shown ? "" : "off" };
    const name = el("span", { class: "text" }, naming.name(object));
    return el("button", { ...attributes, onclick: choose, onkeydown: move }, name, el("small", {}, where));
  }
}

/** Arrow keys move through the results. */
function move(event: KeyboardEvent): void {
  const item = (event.currentTarget as HTMLElement).parentElement!;
  const to = { ArrowDown: item.nextElementSibling, ArrowUp: item.previousElementSibling }[event.key];
  if (!to) return;
  to.querySelector("button")?.focus();
  event.preventDefault();
}
