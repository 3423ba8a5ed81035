/** Objects grouped by class, storey or another label, with counts: hide, show alone, make unpickable. */

import { objectsOf, type Actions } from "../actions.ts";
import { choice, el, icon, iconButton, replace, textButton, type IconName } from "../dom.ts";
import { count } from "../format.ts";
import { codedLabel, frequentCodes, groupLabels, type Coded } from "../labels.ts";

/** Objects listed under an open group before "more" is pressed. */
const SHOWN = 100;

interface Node {
  key: string;
  text: string;
  objects: number[];
}

export class Tree {
  readonly element: HTMLElement;
  private readonly list = el("ul", { class: "tree", "data-test": "tree" });
  private readonly total = el("span", { class: "total", "data-test": "shown-count" });
  private readonly undo: HTMLButtonElement;
  private readonly open = new Set<string>();
  private readonly shown = new Map<string, number>();
  private label: string;

  constructor(private readonly actions: Actions) {
    const { store } = actions;
    const labels = groupLabels(store.model);
    this.label = labels[0] ?? "";
    const options = labels.map((value) => ({ value, text: `by ${value}` }));
    const grouping = choice("group objects by", "tree-label", options, (value) => this.group(value));
    this.undo = textButton("Undo", "undo", () => store.undo(), "undo the last change of what is hidden (U)");
    const all = textButton("Show all", "show-all", () => actions.showAll(), "show everything, without any filter (A)");
    const bar = el("div", { class: "bar" }, labels.length > 1 && grouping, this.total, this.undo, all);
    this.element = el("div", { class: "block" }, bar, labels.length ? this.list : false);
    store.watch(["hidden", "unpickable", "ranges", "undoable"], () => this.draw());
    store.watch(["selection"], () => this.draw());
  }

  private group(label: string): void {
    this.label = label;
    this.open.clear();
    this.draw();
  }

  private draw(): void {
    const { store } = this.actions;
    const { shownCount } = store.visibility;
    this.total.textContent = `${count(shownCount)} of ${count(store.model.objects)} shown`;
    this.undo.disabled = store.state.undoable === 0;
    const label = codedLabel(store.model, this.label);
    const focus = document.activeElement?.getAttribute("data-key");
    if (label) replace(this.list, ...this.nodes(label).map((node) => this.item(node, 1)));
    if (focus) this.list.querySelector<HTMLElement>(`[data-key="${CSS.escape(focus)}"]`)?.focus();
  }

  private nodes(label: Coded, within?: number[]): Node[] {
    const codes = within ? codesWithin(label, within) : frequentCodes(label);
    return codes.map((code) => ({
      key: `${label.name}=${code}`,
      text: label.words[code],
      objects: objectsOf(label, code, within),
    }));
  }

  private item(node: Node, level: number): HTMLElement {
    const { key, text, objects } = node;
    const { shown, unpickable } = this.actions.store.visibility;
    const visible = objects.reduce((sum, object) => sum + shown[object], 0);
    const locked = objects.length > 0 && objects.every((object) => unpickable[object]);
    const number = visible === objects.length ? count(visible) : `${count(visible)} of ${count(objects.length)}`;
    const row = el(
      "div",
      { class: visible ? "leaf" : "leaf off" },
      this.toggle(key, text),
      el("small", {}, number),
      this.act(visible ? "eye" : "closed", visible ? `hide ${text}` : `show ${text}`, `${key} hide`, () =>
        this.actions.setHidden(objects, visible > 0),
      ),
      this.act("target", `show only ${text}`, `${key} only`, () => this.actions.isolate(objects)),
      this.pointer(text, `${key} pick`, locked, () => this.actions.setUnpickable(objects, !locked)),
    );
    return el("li", { "data-test": "group", "data-word": text }, row, this.open.has(key) && this.inside(node, level));
  }

  private toggle(key: string, text: string): HTMLElement {
    const open = this.open.has(key);
    const flip = () => {
      if (!this.open.delete(key)) this.open.add(key);
      this.draw();
    };
    const attributes = { type: "button", class: "expand", "aria-expanded": String(open), "data-key": key, title: text };
    return el("button", { ...attributes, onclick: flip }, icon("right"), el("span", { class: "text" }, text));
  }

  private act(name: IconName, label: string, key: string, act: () => void): HTMLElement {
    const made = iconButton(name, label, `tree-${key.split(" ").at(-1)}`, act);
    made.dataset.key = key;
    return made;
  }

  private pointer(text: string, key: string, locked: boolean, act: () => void): HTMLElement {
    const label = locked ? `let rays hit ${text} again` : `let rays pass through ${text}, though it is drawn`;
    const made = this.act("pointer", label, key, act);
    made.setAttribute("aria-pressed", String(locked));
    made.classList.toggle("crossed", locked);
    return made;
  }

  /** Classes inside a group of another label, else the objects. */
  private inside(node: Node, level: number): HTMLElement {
    const { classes } = this.actions.store.model;
    const label = level === 1 && this.label !== classes ? codedLabel(this.actions.store.model, classes) : null;
    if (!label) return this.objects(node);
    const nodes = this.nodes(label, node.objects).map((one) => ({ ...one, key: `${node.key}/${one.key}` }));
    return el("ul", {}, ...nodes.map((one) => this.item(one, level + 1)));
  }

  private objects({ key, objects }: Node): HTMLElement {
    const limit = this.shown.get(key) ?? SHOWN;
    const more = objects.length - limit;
    const next = () => {
      this.shown.set(key, limit + SHOWN);
      this.draw();
    };
    const items = objects.slice(0, limit).map((object) => el("li", {}, this.object(object)));
    return el("ul", {}, ...items, more > 0 && el("li", {}, textButton(`${count(more)} more`, "tree-more", next)));
  }

  private object(object: number): HTMLElement {
    const { actions } = this;
    const { shown } = actions.store.visibility;
    const name = actions.naming.name(object);
    const chosen = actions.store.state.selection.includes(object);
    const choose = (event: MouseEvent) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) actions.toggleSelected(object);
      else actions.zoomTo([object]);
    };
    const attributes = { type: "button", class: "expand", title: `zoom to ${name}`, "data-key": `object ${object}` };
    return el(
      "div",
      { class: `leaf${chosen ? " on" : ""}${shown[object] ? "" : " off"}`, "data-object": object },
      el("button", { ...attributes, "aria-pressed": String(chosen), onclick: choose }, el("span", { class: "text" }, name)),
      this.act(shown[object] ? "eye" : "closed", `${shown[object] ? "hide" : "show"} ${name}`, `${object} hide`, () =>
        actions.setHidden([object], shown[object] === 1),
      ),
    );
  }
}

function codesWithin(label: Coded, within: number[]): number[] {
  const counts = new Map<number, number>();
  for (const object of within) counts.set(label.codes[object], (counts.get(label.codes[object]) ?? 0) + 1);
  return [...counts.keys()].sort((a, b) => counts.get(b)! - counts.get(a)!);
}
