/** When pictures are drawn: coarse while the camera moves, full at rest, then finer; nothing while all is shown. */

import type { Picture, Plan } from "./picture.ts";

/** How well a picture is drawn. */
export interface Quality {
  kind: "moving" | "rest" | "fine";
  /** Whether there is time for the shade of depths: software draws it in the last picture alone. */
  depthCue: boolean;
  /** Pixels of the picture for one of the screen. */
  scale: number;
  /** Boxes of fewer pixels are points. */
  dotsBelow: number;
  /** The most boxes that are not points. */
  mostBoxes: number;
  /** Of points, one in this number is drawn. */
  stride: number;
}

export interface FrameHost {
  plan(quality: Quality, overdue: () => boolean): Plan;
  /** A picture is on the screen. */
  shown(): void;
}

/** Milliseconds: after a movement the view rests; a part of a picture; shapes of a moving picture; two of them. */
const REST = 160;
const SLICE = 40;
const MOVING = 75;
const TARGET = 140;
/** A full picture that takes longer than this shows its parts. */
const PATIENCE = 700;
/** From so many pixels of the screen for one of the page on, the full picture is the last. */
const FINE = 1.75;
const DOTS = { slow: 3, fast: 1.5 };
/** The most boxes of a moving picture that are not points. */
const MOST_BOXES = 6000;
const LEAST_SCALE = 0.5;
/** How coarse moving pictures can be: 0 is as good as at rest; above 1 points are left out. */
const COARSEST = 6;

export class Frames {
  frames = 0;
  complete = false;
  private readonly picture: Picture;
  private readonly host: FrameHost;
  private readonly slow: boolean;
  private work: Generator<void, void> | null = null;
  private kind: Quality["kind"] = "rest";
  private stale = false;
  private moved = -Infinity;
  private lastShown = 0;
  private scheduled = false;
  private coarse = 0;
  private waiting: (() => void)[] = [];

  constructor(picture: Picture, host: FrameHost, slow: boolean) {
    this.picture = picture;
    this.host = host;
    this.slow = slow;
  }

  private get restDots(): number {
    return this.slow ? DOTS.slow : DOTS.fast;
  }

  /**
   * The picture on the screen is out of date; `moving`: more changes follow soon. A change that comes before the last
   * one is drawn counts as moving, so that something is shown all the while.
   */
  invalidate(moving: boolean): void {
    if (moving || this.work) this.moved = performance.now();
    this.stale = true;
    this.complete = false;
    this.schedule();
  }

  /** Resolves once the full picture is on the screen. */
  settled(): Promise<void> {
    if (this.complete && this.work === null && !this.stale) return Promise.resolve();
    this.schedule();
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  /** Draws a full picture at once; the screen keeps what it shows. */
  drawNow(scale: number): void {
    const quality: Quality = { ...this.quality("fine"), scale, dotsBelow: this.restDots };
    const steps = this.picture.drawing(this.host.plan(quality, () => false));
    while (!steps.next().done);
    this.work = null;
    this.invalidate(false);
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.frame();
    });
  }

  private frame(): void {
    const resting = performance.now() - this.moved;
    if (this.stale && resting < REST) return this.drawMoving();
    if (this.stale || (this.kind === "moving" && resting >= REST)) this.begin("rest");
    if (this.kind === "moving") this.schedule();
    else if (this.work) this.continueWork();
  }

  private drawMoving(): void {
    const start = performance.now();
    // What is on its way to the screen does not count.
    this.picture.wait();
    const began = performance.now();
    this.stale = false;
    this.work = null;
    this.kind = "moving";
    const overdue = () => this.slow && performance.now() - began > MOVING;
    const steps = this.picture.drawing(this.host.plan(this.quality("moving"), overdue));
    while (!steps.next().done);
    this.present();
    if (this.slow) this.adapt(performance.now() - start);
    this.schedule();
  }

  /** Chooses how coarse the next moving picture is by the time of the last one. */
  private adapt(milliseconds: number): void {
    const worse = Math.min(2, Math.max(0.5, Math.log2(milliseconds / TARGET)));
    if (milliseconds > TARGET) this.coarse = Math.min(COARSEST, this.coarse + worse);
    else if (milliseconds < TARGET / 2) this.coarse = Math.max(0, this.coarse - 0.25);
  }

  private quality(kind: Quality["kind"]): Quality {
    const fine = kind === "fine" ? 2 : 1;
    const depthCue = !this.slow || kind === "fine" || (kind === "rest" && devicePixelRatio >= FINE);
    const full = { kind, depthCue, scale: fine, dotsBelow: this.restDots * fine, mostBoxes: Infinity, stride: 1 };
    if (kind !== "moving" || !this.slow) return full;
    const scale = Math.max(LEAST_SCALE, 1 / (1 + this.coarse));
    const mostBoxes = Math.round(MOST_BOXES / (1 + this.coarse));
    return { ...full, scale, mostBoxes, stride: 2 ** Math.max(0, Math.floor(this.coarse - 1)) };
  }

  private begin(kind: "rest" | "fine"): void {
    this.stale = false;
    this.kind = kind;
    this.lastShown = performance.now();
    this.work = this.picture.drawing(this.host.plan(this.quality(kind), () => false));
  }

  private continueWork(): void {
    const began = performance.now();
    let done = false;
    do done = this.work!.next().done === true;
    while (!done && (!this.slow || performance.now() - began < SLICE));
    if (done) this.finish();
    else if (this.kind === "rest" && performance.now() - this.lastShown > PATIENCE) this.present();
    if (this.work) this.schedule();
  }

  /** Shows a picture; a full one is followed by a finer one, however long it took: what is shown depends on the state. */
  private finish(): void {
    this.work = null;
    this.present();
    this.complete = true;
    if (this.kind === "rest" && devicePixelRatio < FINE) return this.begin("fine");
    this.waiting.splice(0).forEach((resolve) => resolve());
  }

  private present(): void {
    this.picture.show();
    this.frames++;
    this.lastShown = performance.now();
    this.host.shown();
  }
}
