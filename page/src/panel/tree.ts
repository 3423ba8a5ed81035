/** Objects grouped by class, storey or another label, with counts: hide, show alone, make unpickable. */

import { objectsOf, type Actions } from "../actions.ts";
import { choice, el, icon, iconButton, replace, textButton, type IconName } from "../dom.ts";
import { count, wordText } from "../format.ts";
import { codedLabel, frequentCodes, groupLabels, type Coded } from "../labels.ts";
import type { Visibility } from "../visibility.ts";
import { button } from "./command.ts";

/** Groups and objects listed before "more" is pressed. */
const SHOWN = 100;

const naturally = new Intl.Collator("en", { numeric: true });

interface Group {
  key: string;
  /** The word, and how it is shown. */
  word: string;
  text: string;
  total: number;
  shown: number;
  locked: boolean;
  /** Computed when needed: a scene may have 10⁶ objects. */
  objects: () => number[];
}

export class Tree {
  readonly element: HTMLElement;
  private readonly list = el("ul", { class: "tree", "data-test": "tree" });
  /** How many objects are shown, for the head of the panel. */
  readonly total = el("small", { class: "total", "data-test": "shown-count" });
  private readonly open = new Set<string>();
  private readonly shown = new Map<string, number>();
  private label: string;

  constructor(private readonly actions: Actions) {
    const { store } = actions;
    const labels = groupLabels(store.model);
    this.label = labels[0] ?? "";
    const options = labels.map((value) => ({ value, text: `by ${value}` }));
    const grouping = choice("group objects by", "tree-label", options, (value) => this.group(value));
    const names = ["undo", ...(store.model.hiddenAtStart ? ["reset"] : []), "show-all"];
    const buttons = names.map((name) => button(actions, name));
    const bar = el("div", { class: "bar" }, labels.length > 1 && grouping, el("span", { class: "text" }), ...buttons);
    this.element = el("div", { class: "block" }, bar, this.list);
    store.watch(["hidden", "unpickable", "ranges"], () => this.draw());
    store.watch(["selection"], () => this.markSelected());
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
    const label = codedLabel(store.model, this.label);
    const focus = document.activeElement?.getAttribute("data-key");
    replace(this.list, ...(label ? this.items(label, this.label, 1) : this.objects("")));
    if (focus) this.list.querySelector<HTMLElement>(`[data-key="${CSS.escape(focus)}"]`)?.focus();
    this.markSelected();
  }

  private markSelected(): void {
    const selected = new Set(this.actions.store.state.selection.map(String));
    for (const row of this.list.querySelectorAll<HTMLElement>("[data-object]")) {
      row.classList.toggle("on", selected.has(row.dataset.object!));
    }
  }

  private items(label: Coded, key: string, level: number, within?: number[]): HTMLElement[] {
    const limit = this.shown.get(key) ?? SHOWN;
    const found = groupsOf(label, key, this.actions.store.visibility, within);
    if (label.name === this.actions.store.model.levels) found.sort((a, b) => naturally.compare(a.text, b.text));
    return [...found.slice(0, limit).map((group) => this.item(group, level)), ...this.more(key, found.length)];
  }

  private more(key: string, total: number): HTMLElement[] {
    const limit = this.shown.get(key) ?? SHOWN;
    if (total <= limit) return [];
    const next = () => {
      this.shown.set(key, 2 * limit);
      this.draw();
    };
    return [el("li", {}, textButton(`${count(total - limit)} more`, "tree-more", next))];
  }

  private item(group: Group, level: number): HTMLElement {
    const { key, text, total, shown, locked } = group;
    const number = shown === total ? count(total) : `${count(shown)} of ${count(total)}`;
    const eye = shown ? ("eye" as const) : ("closed" as const);
    const hide = () => this.actions.setHidden(group.objects(), shown > 0);
    const row = el(
      "div",
      { class: shown ? "leaf" : "leaf off" },
      this.toggle(key, text),
      el("small", {}, number),
      this.act(eye, `${shown ? "hide" : "show"} ${text}`, `${key} hide`, hide),
      this.act("target", `show only ${text}`, `${key} only`, () => this.actions.isolate(group.objects())),
      this.pointer(text, `${key} pick`, locked, () => this.actions.setUnpickable(group.objects(), !locked)),
    );
    return el("li", { "data-test": "group", "data-word": group.word }, row, this.open.has(key) && this.inside(group, level));
  }

  private toggle(key: string, text: string): HTMLElement {
    const open = this.open.has(key);
    const flip = () => {
      if (!this.open.delete(key)) this.open.add(key);
      this.draw();
    };
    const attributes = { type: "button", class: "expand", "aria-expanded": String(open), "data-key": key, title: text };
    return el(
      "button",
      { ...attributes, "data-test": "tree-expand", onclick: flip },
      icon("right"),
      el("span", { class: "text" }, text),
    );
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
  private inside({ key, objects }: Group, level: number): HTMLElement {
    const { model } = this.actions.store;
    const label = level === 1 && this.label !== model.classes ? codedLabel(model, model.classes) : null;
    if (label) return el("ul", {}, ...this.items(label, key, level + 1, objects()));
    return el("ul", {}, ...this.objects(key, objects()));
  }

  /** The first objects of a group, or of a scene without groups. */
  private objects(key: string, within?: number[]): HTMLElement[] {
    const total = within?.length ?? this.actions.store.model.objects;
    const listed = Array.from({ length: Math.min(total, this.shown.get(key) ?? SHOWN) }, (_, at) => within?.[at] ?? at);
    return [...listed.map((object) => el("li", {}, this.object(object))), ...this.more(key, total)];
  }

  private object(object: number): HTMLElement {
    const { actions } = this;
    const { shown } = actions.store.visibility;
    const name = actions.naming.name(object);
    const choose = (event: MouseEvent) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) actions.toggleSelected(object);
      else actions.zoomTo([object]);
    };
    const attributes = { type: "button", class: "expand", title: `zoom to ${name}`, "data-key": `object ${object}` };
    return el(
      "div",
      { class: shown[object] ? "leaf" : "leaf off", "data-object": object },
      el("button", { ...attributes, "data-test": "tree-object", onclick: choose }, el("span", { class: "text" }, name)),
      this.act(shown[object] ? "eye" : "closed", `${shown[object] ? "hide" : "show"} ${name}`, `${object} hide`, () =>
        actions.setHidden([object], shown[object] === 1),
      ),
    );
  }
}

/** The groups of a label with counts of one pass over the objects: storeys by name, others by size. */
function groupsOf(label: Coded, key: string, visibility: Visibility, within?: number[]): Group[] {
  const { codes, words } = label;
  const [total, shown, locked] = [0, 1, 2].map(() => new Uint32Array(words.length));
  const size = within?.length ?? codes.length;
  for (let at = 0; at < size; at++) {
    const object = within ? within[at] : at;
    total[codes[object]]++;
    shown[codes[object]] += visibility.shown[object];
    locked[codes[object]] += visibility.unpickable[object];
  }
  return frequentCodes({ ...label, counts: total }).map((code) => ({
    key: `${key}/${label.name}=${code}`,
    text: wordText(words[code]),
    word: words[code],
    total: total[code],
    shown: shown[code],
    locked: locked[code] === total[code],
    objects: () => objectsOf(label, code, within),
  }));
}
