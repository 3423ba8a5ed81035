/** The panel's place: a column next to the scene, or a sheet over its lower part on narrow screens. */

import { el } from "../dom.ts";

/** Shares of the screen's height; the scene is always visible above. */
const HEIGHTS = [0.12, 0.45, 0.72] as const;
/** Below this width the panel is a sheet. */
export const NARROW = "(max-width: 700px)";

export class Sheet {
  readonly element: HTMLElement;
  private readonly grip: HTMLButtonElement;
  private readonly media = matchMedia(NARROW);
  private size = 1;
  private from: { y: number; height: number } | null = null;
  private dragged = false;

  constructor(
    content: HTMLElement[],
    private readonly moved: (covered: number, narrow: boolean) => void,
  ) {
    const attributes = { type: "button", class: "grip", "aria-label": "height of the panel", "data-test": "grip" };
    this.grip = el("button", { ...attributes, onclick: () => this.step() });
    this.grip.addEventListener("pointerdown", (event) => this.start(event));
    this.grip.addEventListener("pointermove", (event) => this.drag(event));
    this.grip.addEventListener("pointerup", () => this.stop());
    this.grip.addEventListener("pointercancel", () => this.stop());
    this.element = el("aside", { class: "sheet", "aria-label": "panel", "data-test": "panel" }, this.grip, ...content);
    this.media.addEventListener("change", () => this.place());
    addEventListener("resize", () => this.place());
  }

  get narrow(): boolean {
    return this.media.matches;
  }

  /** Give the panel its height; to be called once it is in the document. */
  place(): void {
    this.element.style.height = this.narrow ? `${Math.round(HEIGHTS[this.size] * innerHeight)}px` : "";
    this.grip.setAttribute("aria-expanded", String(this.size > 0));
    this.moved(this.narrow ? Math.round(HEIGHTS[this.size] * innerHeight) : 0, this.narrow);
  }

  /** Open the sheet to its middle height if it is closed. */
  open(): void {
    if (this.size > 0) return;
    this.size = 1;
    this.place();
  }

  private step(): void {
    if (this.dragged) return;
    this.size = (this.size + 1) % HEIGHTS.length;
    this.place();
  }

  private start(event: PointerEvent): void {
    this.from = { y: event.clientY, height: this.element.offsetHeight };
    this.dragged = false;
    this.grip.setPointerCapture(event.pointerId);
  }

  private drag(event: PointerEvent): void {
    if (!this.from || Math.abs(event.clientY - this.from.y) < 6) return;
    this.dragged = true;
    const height = this.from.height + this.from.y - event.clientY;
    const [least, , most] = HEIGHTS.map((share) => share * innerHeight);
    this.element.style.height = `${Math.min(most, Math.max(least, height))}px`;
  }

  /** Take the nearest of the heights; a press without a drag is a click. */
  private stop(): void {
    this.from = null;
    if (!this.dragged) return;
    const away = HEIGHTS.map((share) => Math.abs(share * innerHeight - this.element.offsetHeight));
    this.size = away.indexOf(Math.min(...away));
    this.place();
  }
}
