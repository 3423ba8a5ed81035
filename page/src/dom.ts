/** Elements without markup in strings: no name of a scene is ever parsed as HTML. */

import { harmless } from "./format.ts";

type Value = string | number | boolean | null | undefined;
export type Child = Node | string | null | undefined | false;
type Handlers = { [K in keyof HTMLElementEventMap as `on${K}`]?: (event: HTMLElementEventMap[K]) => void };
export type Attributes = Handlers & { [name: string]: Value | ((event: never) => void) };

/** Make an element: `on…` are listeners, true and false present and absent attributes, the rest attributes. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) attach(made, name, value);
  made.append(...nodesOf(children));
  return made;
}

/** Text is shown without what could change its direction. */
function nodesOf(children: Child[]): (Node | string)[] {
  const given = children.filter((child): child is Node | string => Boolean(child) || child === "");
  return given.map((child) => (typeof child === "string" ? harmless(child) : child));
}

/** Show a text in an element. */
export function say(element: HTMLElement, text: string, title = ""): void {
  element.textContent = harmless(text);
  if (title) element.title = harmless(title);
}

const SHOWN = ["title", "aria-label", "placeholder"];

function attach(made: HTMLElement, name: string, value: Attributes[string]): void {
  if (typeof value === "function") made.addEventListener(name.slice(2), value as EventListener);
  else if (value === true) made.setAttribute(name, "");
  else if (value !== false && value !== null && value !== undefined) {
    made.setAttribute(name, SHOWN.includes(name) ? harmless(String(value)) : String(value));
  }
}

/** Strokes of the icons on a field of 24 by 24. */
const ICONS = {
  fit: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  target: "M12 3v4M12 17v4M3 12h4M17 12h4M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8",
  ortho: "M5 5h14v14H5zM5 12h14M12 5v14",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4.2 4.2 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4.2 4.2 0 0 0 6 6l1-1",
  save: "M12 4v11M7 10l5 5 5-5M5 20h14",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.5",
  open: "M3 7h6l2 2h10v10H3z",
  eye: "M2 12s4-6.5 10-6.5S22 12 22 12s-4 6.5-10 6.5S2 12 2 12zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6",
  closed: "M3 9c2.5 3.3 5.5 5 9 5s6.5-1.7 9-5M5.5 13.5L4 16M12 14.5v3M18.5 13.5L20 16",
  pointer: "M6 3l12 9-5.5 1L15 19l-3 1.2-2.3-6L6 17z",
  ruler: "M3 16L16 3l5 5L8 21zM7 12l2 2M10 9l2 2M13 6l2 2",
  undo: "M8 5L4 9l4 4M4 9h10a5 5 0 0 1 0 10h-4",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  flip: "M12 3v18M9 7L4 12l5 5zM15 7l5 5-5 5z",
  right: "M9 5l7 7-7 7",
} as const;
export type IconName = keyof typeof ICONS;

export function icon(name: IconName): SVGSVGElement {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const path = document.createElementNS(namespace, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button that shows an icon alone; its name is its tooltip and what screen readers say. */
export function iconButton(name: IconName, label: string, test: string, act: (event: MouseEvent) => void) {
  const attributes = { type: "button", class: "bare", title: label, "aria-label": label, "data-test": test };
  return el("button", { ...attributes, onclick: act }, icon(name));
}

export function textButton(text: string, test: string, act: () => void, title?: string) {
  return el("button", { type: "button", "data-test": test, title, onclick: act }, text);
}

/** A check box with its text; `set` shows the state without calling `act`. */
export function checkBox(text: string, test: string, act: (on: boolean) => void) {
  const input = el("input", { type: "checkbox", "data-test": test, onchange: () => act(input.checked) });
  const node = el("label", { class: "check" }, input, text);
  return { node, input, set: (on: boolean) => void (input.checked = on) };
}

export interface Option {
  value: string;
  text: string;
}

export function choice(label: string, test: string, options: Option[], act: (value: string) => void) {
  const made = options.map(({ value, text }) => el("option", { value }, text));
  const attributes = { "aria-label": label, "data-test": test };
  const select = el("select", { ...attributes, onchange: () => act(select.value) }, ...made);
  return select;
}

/** A field for a number; `act` gets finite numbers only, else the last valid one comes back. */
export function numberField(label: string, test: string, act: (value: number) => void) {
  const attributes = { type: "text", inputmode: "decimal", class: "number", "aria-label": label, "data-test": test };
  let valid = "";
  const input = el("input", { ...attributes, onchange: () => accept() });
  const accept = () => {
    const value = Number(input.value.trim().replace(",", "."));
    if (input.value.trim() && Number.isFinite(value)) act(value);
    else input.value = valid;
  };
  return { input, set: (value: number) => void (input.value = valid = plain(value)) };
}

/** The shortest text of a number of about seven digits, without exponents where they do not help. */
function plain(value: number): string {
  return String(Number(value.toPrecision(7)));
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren(...nodesOf(children).filter(Boolean));
}

/** Run `act` at most once a pause, with the last call's effect. */
export function later(pause: number, act: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, pause);
  };
}

/** Offer bytes or a picture as a download. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const anchor = el("a", { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
