/** One message at a time: errors stay until closed, progress until done, others for some seconds. */

import { el, iconButton, say } from "../dom.ts";

type Kind = "error" | "lost" | "progress" | "info";
const BRIEF = 5000;
/** What a message may not take the place of. */
const RANK: Record<Kind, number> = { info: 0, progress: 1, error: 2, lost: 3 };

export class Notice {
  readonly element: HTMLElement;
  private readonly text = el("span");
  private readonly bar = el("progress", { max: 1, "aria-label": "progress" });
  private readonly close: HTMLButtonElement;
  private kind: Kind | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.close = iconButton("close", "close this message", "notice-close", () => this.hide());
    const attributes = { class: "notice", role: "status", "aria-live": "polite", "data-test": "notice", hidden: true };
    this.element = el("div", attributes, this.text, this.bar, this.close);
  }

  error(text: string): void {
    this.show("error", text);
  }

  info(text: string): void {
    if (!this.show("info", text)) return;
    this.timer = setTimeout(() => this.clear("info"), BRIEF);
  }

  /** The server does not answer; stays until `clear("lost")`. */
  lost(text: string): void {
    this.show("lost", text);
  }

  progress(text: string, fraction: number): void {
    if (fraction >= 1) return void this.clear("progress");
    if (!this.show("progress", text)) return;
    if (fraction > 0) this.bar.value = fraction;
    else this.bar.removeAttribute("value");
  }

  /** Take away what is shown if it is of this kind; returns whether it was. */
  clear(kind: Kind): boolean {
    const shown = this.kind === kind;
    if (shown) this.hide();
    return shown;
  }

  private show(kind: Kind, text: string): boolean {
    if (this.kind && RANK[kind] < RANK[this.kind]) return false;
    clearTimeout(this.timer);
    this.kind = kind;
    say(this.text, text);
    this.bar.hidden = kind !== "progress";
    this.close.hidden = kind === "lost";
    this.element.className = `notice ${kind}`;
    this.element.setAttribute("role", kind === "error" || kind === "lost" ? "alert" : "status");
    this.element.hidden = false;
    return true;
  }

  private hide(): void {
    this.kind = null;
    this.element.hidden = true;
  }
}
