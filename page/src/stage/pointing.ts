/** What pointers do to the camera and to the free plane, and what a click means. */

import type { CameraState, CutPlane, Ray, Vec3 } from "../types.ts";
import { basisOf, orbit, pan, projector, type Viewport, withTargetAt, zoom } from "./camera.ts";
import type { Gestures } from "./controls.ts";
import { movePlane, turnPlane } from "./cut.ts";
import { handlesOf } from "./furniture.ts";
import { along, dot, length, sub } from "./vec.ts";

const RAY_PIXELS = 6;
/** A ray is clicked where it is nearer than the shape by this part of the distance. */
const RAY_MARGIN = 0.005;
const HANDLE_PIXELS = { mouse: 14, touch: 26 };

/** What pointers read and change; x and y are pixels of the canvas. */
export interface PointingHost {
  readonly camera: CameraState;
  readonly viewport: Viewport;
  readonly cut: readonly CutPlane[];
  /** The least distance of the eye from its target. */
  readonly smallest: number;
  fullRay(x: number, y: number): Ray;
  /** The point of the shapes at a pixel, as they are drawn. */
  pointAt(x: number, y: number): Vec3 | null;
  rayNear(x: number, y: number, within: number): { row: number; depth: number } | null;
  moveTo(camera: CameraState): void;
  moveCut(planes: CutPlane[]): void;
  rest(): void;
  picked(x: number, y: number, add: boolean): void;
  pickedRow(row: number): void;
}

interface Handle {
  kind: "move" | "turn";
  from: Vec3;
  arm: number;
}

export class Pointing implements Gestures {
  private readonly host: PointingHost;
  private pivot: Vec3 | null = null;
  private handle: Handle | null = null;

  constructor(host: PointingHost) {
    this.host = host;
  }

  /** Makes the point under the pointer the one about which the view turns. */
  begin(x: number, y: number): void {
    this.pivot = this.host.pointAt(x, y);
    if (this.pivot) this.host.moveTo(withTargetAt(this.host.camera, this.pivot));
  }

  orbit(dx: number, dy: number): void {
    const { camera, viewport } = this.host;
    const angle = Math.PI / Math.max(300, Math.min(viewport.width, viewport.height));
    this.host.moveTo(orbit(camera, this.pivot ?? camera.target, dx * angle, dy * angle));
  }

  pan(dx: number, dy: number): void {
    this.host.moveTo(pan(this.host.camera, this.host.viewport, dx, dy));
  }

  zoom(x: number, y: number, factor: number): void {
    const { camera } = this.host;
    const ray = this.host.fullRay(x, y);
    const { forward } = basisOf(camera);
    const t = dot(sub(camera.target, ray.origin), forward) / dot(ray.direction, forward);
    this.host.moveTo(zoom(camera, along(ray.origin, ray.direction, t), factor, this.host.smallest));
  }

  end(): void {
    this.pivot = null;
    this.handle = null;
    this.host.rest();
  }

  click(x: number, y: number, add: boolean): void {
    const near = this.host.rayNear(x, y, RAY_PIXELS);
    if (near && this.isInFront(near.depth, x, y)) this.host.pickedRow(near.row);
    else this.host.picked(x, y, add);
  }

  /** Returns whether no shape at a pixel is in front of what is so deep in the view. */
  private isInFront(depth: number, x: number, y: number): boolean {
    const { camera, viewport } = this.host;
    const shape = this.host.pointAt(x, y);
    if (!shape) return true;
    return projector(camera, viewport)(shape).depth - depth >= RAY_MARGIN * length(sub(shape, camera.eye));
  }

  private freePlane(): number {
    return this.host.cut.findIndex((plane) => plane.on && plane.axis === "free");
  }

  grab(x: number, y: number, touch: boolean): boolean {
    this.handle = this.handleAt(x, y, touch ? HANDLE_PIXELS.touch : HANDLE_PIXELS.mouse);
    return this.handle !== null;
  }

  overHandle(x: number, y: number): boolean {
    return this.handleAt(x, y, HANDLE_PIXELS.mouse) !== null;
  }

  private handleAt(x: number, y: number, reach: number): Handle | null {
    const index = this.freePlane();
    if (index < 0) return null;
    const plane = this.host.cut[index];
    const { move, turn, arm } = handlesOf(this.host.camera, this.host.viewport, plane);
    const distance = (point: { x: number; y: number }) => Math.hypot(point.x - x, point.y - y);
    if (Math.min(distance(move), distance(turn)) > reach) return null;
    const kind = distance(turn) < distance(move) ? "turn" : "move";
    return { kind, from: plane.point ?? [0, 0, 0], arm };
  }

  dragHandle(x: number, y: number): void {
    const index = this.freePlane();
    if (index < 0 || !this.handle) return;
    const { kind, from, arm } = this.handle;
    const ray = this.host.fullRay(x, y);
    const plane = this.host.cut[index];
    const changed = kind === "turn" ? turnPlane(plane, arm, ray) : movePlane(plane, from, ray);
    this.host.moveCut(this.host.cut.map((one, i) => (i === index ? changed : one)));
  }
}
