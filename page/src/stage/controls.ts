/** Pointers on the picture: drags, pinches, the wheel, clicks and taps. */

/** What pointers mean; coordinates are pixels of the element. */
export interface Gestures {
  /** Returns whether a handle is there, and takes the drag if so. */
  grab(x: number, y: number, touch: boolean): boolean;
  dragHandle(x: number, y: number): void;
  /** Returns whether a handle is there. */
  overHandle(x: number, y: number): boolean;
  /** A drag that orbits or moves begins, or the wheel turns after a pause. */
  begin(x: number, y: number): void;
  orbit(dx: number, dy: number): void;
  pan(dx: number, dy: number): void;
  /** Nearer at a pixel by a factor below 1. */
  zoom(x: number, y: number, factor: number): void;
  click(x: number, y: number, add: boolean): void;
  /** All fingers and buttons are up. */
  end(): void;
}

interface Point {
  x: number;
  y: number;
}

const CLICK_PIXELS = 5;
const TAP_PIXELS = 12;
const WHEEL_PAUSE = 300;

/** Turns the events of pointers on an element into gestures. */
export class Controls {
  /** Whether a finger or a button is down. */
  get active(): boolean {
    return this.pointers.size > 0;
  }

  private readonly element: HTMLElement;
  private readonly gestures: Gestures;
  private readonly pointers = new Map<number, Point>();
  private start: Point = { x: 0, y: 0 };
  private mode: "click" | "orbit" | "pan" | "handle" | "none" = "none";
  private drag: "orbit" | "pan" = "orbit";
  private lastWheel = -Infinity;

  constructor(element: HTMLElement, gestures: Gestures) {
    this.element = element;
    this.gestures = gestures;
    element.style.touchAction = "none";
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.move(event));
    element.addEventListener("pointerup", (event) => this.up(event));
    element.addEventListener("pointercancel", (event) => this.cancel(event));
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  private down(event: PointerEvent): void {
    this.element.setPointerCapture(event.pointerId);
    const point = at(event);
    this.pointers.set(event.pointerId, point);
    if (this.pointers.size > 1) {
      this.mode = "none";
      this.gestures.begin(this.middle().x, this.middle().y);
      return;
    }
    this.start = point;
    this.drag = event.button !== 0 || event.shiftKey ? "pan" : "orbit";
    const handle = event.button === 0 && this.gestures.grab(point.x, point.y, event.pointerType === "touch");
    this.mode = handle ? "handle" : "click";
  }

  private move(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    const point = at(event);
    if (!before) return this.hover(point);
    if (this.pointers.size > 1) return this.pinch(event.pointerId, point);
    if (this.mode === "click" && !this.begins(event, point)) return;
    this.pointers.set(event.pointerId, point);
    const [dx, dy] = [point.x - before.x, point.y - before.y];
    if (this.mode === "handle") this.gestures.dragHandle(point.x, point.y);
    if (this.mode === "orbit") this.gestures.orbit(dx, dy);
    if (this.mode === "pan") this.gestures.pan(dx, dy);
  }

  private hover(point: Point): void {
    const cursor = this.gestures.overHandle(point.x, point.y) ? "grab" : "";
    if (this.element.style.cursor !== cursor) this.element.style.cursor = cursor;
  }

  /** Turns what may be a click into a drag once it is far enough. */
  private begins(event: PointerEvent, point: Point): boolean {
    const least = event.pointerType === "touch" ? TAP_PIXELS : CLICK_PIXELS;
    if (Math.hypot(point.x - this.start.x, point.y - this.start.y) < least) return false;
    this.mode = this.drag;
    this.gestures.begin(this.start.x, this.start.y);
    return true;
  }

  /** Moves and zooms by two fingers: their middle and their distance. */
  private pinch(id: number, point: Point): void {
    const [middle, spread] = [this.middle(), this.spread()];
    this.pointers.set(id, point);
    const now = this.middle();
    this.gestures.pan(now.x - middle.x, now.y - middle.y);
    if (spread > 0 && this.spread() > 0) this.gestures.zoom(now.x, now.y, spread / this.spread());
  }

  private middle(): Point {
    const points = [...this.pointers.values()];
    const mean = (of: "x" | "y") => points.reduce((sum, point) => sum + point[of], 0) / points.length;
    return { x: mean("x"), y: mean("y") };
  }

  private spread(): number {
    const [a, b] = this.pointers.values();
    return Math.hypot(a.x - b.x, a.y - b.y);
  }

  private up(event: PointerEvent): void {
    if (!this.pointers.delete(event.pointerId)) return;
    const clicked = this.mode === "click" && event.button === 0;
    if (this.pointers.size === 0) {
      this.mode = "none";
      this.gestures.end();
    }
    const add = event.shiftKey || event.ctrlKey || event.metaKey;
    if (clicked) this.gestures.click(this.start.x, this.start.y, add);
  }

  private cancel(event: PointerEvent): void {
    if (!this.pointers.delete(event.pointerId)) return;
    this.mode = "none";
    if (this.pointers.size === 0) this.gestures.end();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const { x, y } = at(event);
    if (event.timeStamp - this.lastWheel > WHEEL_PAUSE) this.gestures.begin(x, y);
    this.lastWheel = event.timeStamp;
    const pixels = event.deltaY * [1, 16, 400][event.deltaMode];
    this.gestures.zoom(x, y, Math.exp(Math.min(300, Math.max(-300, pixels)) * (event.ctrlKey ? 0.01 : 0.002)));
  }
}

/** Returns where an event is on the element that listens. */
function at(event: MouseEvent): Point {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}
