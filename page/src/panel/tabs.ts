/** Panels under tabs; arrow keys move between them. */

import { el } from "../dom.ts";

export interface Panel {
  name: string;
  title: string;
  content: HTMLElement;
}

export class Tabs {
  readonly element: HTMLElement;
  private readonly list: HTMLElement;
  private readonly body = el("div", { class: "pages" });
  private panels: Panel[] = [];
  private shown = "";

  constructor(
    label: string,
    private readonly changed: () => void = () => {},
    /** Called with the name of the panel that is shown. */
    private readonly showing: (name: string) => void = () => {},
  ) {
    this.list = el("div", {
      class: "tabs",
      role: "tablist",
      "aria-label": label,
      onkeydown: (event) => this.key(event),
    });
    this.element = el("section", { class: "tabbed" }, this.list, this.body);
  }

  fill(panels: Panel[]): void {
    this.panels = panels;
    this.element.hidden = panels.length === 0;
    this.list.hidden = panels.length < 2;
    this.list.replaceChildren(...panels.map((panel) => this.tab(panel)));
    this.body.replaceChildren(...panels.map((panel) => panel.content));
    for (const { content, name } of panels) {
      content.setAttribute("role", "tabpanel");
      content.setAttribute("aria-label", name);
    }
    if (panels.length) this.show(panels.some(({ name }) => name === this.shown) ? this.shown : panels[0].name);
  }

  /** Show a panel; nothing happens if it is not among these. */
  show(name: string): void {
    if (!this.panels.some((panel) => panel.name === name)) return;
    this.shown = name;
    this.showing(name);
    this.panels.forEach((panel, at) => {
      const on = panel.name === name;
      const tab = this.list.children[at] as HTMLElement;
      panel.content.hidden = !on;
      tab.setAttribute("aria-selected", String(on));
      tab.tabIndex = on ? 0 : -1;
    });
  }

  private tab({ name, title }: Panel): HTMLElement {
    const choose = () => {
      this.show(name);
      this.changed();
    };
    return el("button", { type: "button", role: "tab", "data-test": `tab-${name}`, onclick: choose }, title);
  }

  private key(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = this.panels.findIndex(({ name }) => name === this.shown) + step + this.panels.length;
    this.show(this.panels[at % this.panels.length].name);
    (this.list.children[at % this.panels.length] as HTMLElement).focus();
    event.preventDefault();
  }
}
