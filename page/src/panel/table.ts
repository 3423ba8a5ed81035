/** A table of any length: only the rows in sight are elements. Columns sort; rows are chosen by click or by keys. */

import { el } from "../dom.ts";

export interface Column {
  title: string;
  /** Of numbers the width in pixels, of text the share of the rest. */
  width: number;
  text: (row: number) => string;
  /** What the column sorts by; text is compared as text. */
  key: (row: number) => number | string;
  numeric?: boolean;
  /** What the title does not say. */
  tip?: string;
  /** An element before the text. */
  lead?: (row: number) => HTMLElement;
}

export interface TableOptions {
  label: string;
  test: string;
  columns: Column[];
  choose: (row: number, event: MouseEvent | KeyboardEvent) => void;
  /** Rows that are marked as chosen. */
  chosen: (row: number) => boolean;
  /** The object of a row. */
  object?: (row: number) => number;
}

/** Browsers limit the height of elements: longer tables scroll in proportion. */
const TALLEST = 8_000_000;
const PAGE_KEYS: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

export class VirtualTable {
  readonly element: HTMLElement;
  private readonly head: HTMLElement;
  private readonly body: HTMLElement;
  private readonly space = el("div", { class: "space" });
  private order: Uint32Array = new Uint32Array();
  private sorted: { column: number; down: boolean } | null = null;
  private cursor = 0;

  constructor(private readonly options: TableOptions) {
    this.head = el("div", { class: "row head", role: "row" }, ...options.columns.map((_, at) => this.heading(at)));
    this.body = el("div", { class: "body", role: "rowgroup", tabindex: 0, "aria-label": `${options.label}: rows` });
    this.body.addEventListener("keydown", (event) => this.key(event));
    // A table that another one has replaced is measured and scrolled once more: its rows are no longer those of the scene.
    const redraw = () => this.body.isConnected && this.draw();
    this.body.addEventListener("scroll", redraw);
    new ResizeObserver(redraw).observe(this.body);
    const attributes = { class: "table", role: "grid", "aria-label": options.label, "data-test": options.test };
    this.element = el("div", attributes, this.head, this.body);
  }

  /** Show these rows, in the order of the sorted column. */
  fill(rows: Uint32Array): void {
    this.order = rows;
    this.cursor = 0;
    if (this.sorted) this.arrange();
    this.element.setAttribute("aria-rowcount", String(rows.length));
    this.draw();
  }

  get rows(): Uint32Array {
    return this.order;
  }

  /** Draw the rows in sight again: what they say or which is chosen has changed. */
  draw(): void {
    const height = rowHeight(this.element);
    const total = this.order.length * height;
    const scroll = this.body.scrollTop;
    const hidden = Math.max(0, total - this.body.clientHeight);
    this.space.style.height = `${Math.min(total, TALLEST)}px`;
    const top = total > TALLEST ? (scroll / (TALLEST - this.body.clientHeight)) * hidden : scroll;
    const first = Math.max(0, Math.floor(top / height));
    const last = Math.min(this.order.length, first + Math.ceil(this.body.clientHeight / height) + 1);
    const rows = Array.from({ length: last - first }, (_, at) =>
      this.row(first + at, scroll - top + (first + at) * height),
    );
    this.body.replaceChildren(this.space, ...rows);
  }

  /** Scroll until this row is in sight. */
  reveal(row: number): void {
    const at = this.order.indexOf(row);
    if (at < 0) return;
    this.cursor = at;
    const height = rowHeight(this.element);
    const total = this.order.length * height;
    const share = total > TALLEST ? TALLEST / total : 1;
    const top = at * height * share;
    const inSight = top >= this.body.scrollTop && top + height <= this.body.scrollTop + this.body.clientHeight;
    if (!inSight) this.body.scrollTop = top - this.body.clientHeight / 2;
    this.draw();
  }

  private heading(at: number): HTMLElement {
    const { title, numeric, tip = title } = this.options.columns[at];
    const attributes = { type: "button", title: `sort by ${tip}`, "data-test": `${this.options.test}-sort-${at}` };
    const button = el("button", { ...attributes, onclick: () => this.sort(at) }, title);
    const cell = el("div", { role: "columnheader", class: numeric ? "cell number" : "cell" }, button);
    cell.style.flex = flexOf(this.options.columns[at]);
    return cell;
  }

  private sort(column: number): void {
    const down = this.sorted?.column === column && !this.sorted.down;
    this.sorted = { column, down };
    this.arrange();
    this.body.scrollTop = 0;
    [...this.head.children].forEach((cell, at) => {
      if (at === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    this.draw();
  }

  /** Keys are computed once a row, not once a comparison; equal ones stay in the order of the rows. */
  private arrange(): void {
    const { column, down } = this.sorted!;
    const sign = down ? -1 : 1;
    const { key, numeric } = this.options.columns[column];
    const size = this.order.reduce((most, row) => Math.max(most, row + 1), 0);
    const keys: Float64Array | (number | string)[] = numeric ? new Float64Array(size) : new Array(size);
    for (const row of this.order) keys[row] = key(row);
    this.order = this.order.slice().sort((a, b) => {
      if (keys[a] === keys[b]) return a - b;
      return keys[a] < keys[b] ? -sign : sign;
    });
  }

  private row(at: number, top: number): HTMLElement {
    const row = this.order[at];
    const chosen = this.options.chosen(row);
    const cells = this.options.columns.map((column) => cell(column, row));
    const data = { "data-row": row, "data-of": this.options.object?.(row) };
    const aria = { role: "row", "aria-rowindex": at + 1, "aria-selected": String(chosen) };
    const choose = (event: MouseEvent) => this.choose(at, event);
    const made = el("div", { class: chosen ? "row on" : "row", ...aria, ...data, onclick: choose }, ...cells);
    made.style.top = `${top}px`;
    return made;
  }

  private choose(at: number, event: MouseEvent | KeyboardEvent): void {
    this.cursor = at;
    this.options.choose(this.order[at], event);
  }

  private key(event: KeyboardEvent): void {
    const last = this.order.length - 1;
    if (last < 0) return;
    if (event.key === "Enter") return this.choose(this.cursor, event);
    const ends: Record<string, number> = { Home: 0, End: last };
    const to = ends[event.key] ?? this.cursor + (PAGE_KEYS[event.key] ?? NaN);
    if (Number.isNaN(to)) return;
    event.preventDefault();
    this.choose(Math.min(last, Math.max(0, to)), event);
    this.reveal(this.order[this.cursor]);
  }
}

function flexOf({ width, numeric }: Column): string {
  return numeric ? `0 0 ${width}px` : `${width} 1 0`;
}

function cell(column: Column, row: number): HTMLElement {
  const { text, numeric } = column;
  const content = text(row);
  const made = el("div", { class: numeric ? "cell number" : "cell", role: "gridcell", title: content }, column.lead?.(row), content);
  made.style.flex = flexOf(column);
  return made;
}

function rowHeight(element: HTMLElement): number {
  return parseFloat(getComputedStyle(element).getPropertyValue("--row")) || 26;
}
