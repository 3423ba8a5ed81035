/** The matrices of a camera for the GPU, and the way back from a depth. */

import type { CameraState, Vec3 } from "../types.ts";
import { type Basis, basisOf, principalPoint, tangent, type Viewport } from "./camera.ts";
import { add, along, dot, scale, sub } from "./vec.ts";

/** A camera as the programs read it. */
export interface Projection {
  basis: Basis;
  /** Sixteen numbers by columns: from right, up and back of the eye to clip space. */
  matrix: number[];
  near: number;
  far: number;
  /** Pixels of the page of a length of 1; perspective: at a distance of 1. */
  pixels: number;
}

export interface DepthRange {
  near: number;
  far: number;
}

export function projectionOf(camera: CameraState, view: Viewport, range: DepthRange): Projection {
  const { near, far } = range;
  const middle = principalPoint(view);
  const half = camera.orthographic ? camera.height / 2 : tangent(camera);
  const [right, up] = [view.height / (view.width * half), 1 / half];
  const [shiftX, shiftY] = [(2 * middle.x) / view.width - 1, 1 - (2 * middle.y) / view.height];
  const depth = far - near;
  const matrix = camera.orthographic
    ? [right, 0, 0, 0, 0, up, 0, 0, 0, 0, -2 / depth, 0, shiftX, shiftY, -(far + near) / depth, 1]
    : [right, 0, 0, 0, 0, up, 0, 0, -shiftX, -shiftY, -(far + near) / depth, -1, 0, 0, (-2 * far * near) / depth, 0];
  return { basis: basisOf(camera), matrix, near, far, pixels: view.height / (2 * half) };
}

/** Returns the distance along the view of a depth between 0 and 1. */
export function distanceOfDepth(depth: number, { near, far }: DepthRange, orthographic: boolean): number {
  if (orthographic) return near + depth * (far - near);
  return (far * near) / (far - depth * (far - near));
}

/** A half of space: normal · x <= offset. */
export interface Side {
  normal: Vec3;
  offset: number;
}

/** Returns the four sides of the picture; all that is drawn is within them. */
export function sidesOf(camera: CameraState, view: Viewport): Side[] {
  const { right, up, forward } = basisOf(camera);
  const middle = principalPoint(view);
  const half = view.height / 2;
  const ends: [Vec3, number][] = [
    [right, (view.width - middle.x) / half],
    [scale(right, -1), middle.x / half],
    [up, middle.y / half],
    [scale(up, -1), (view.height - middle.y) / half],
  ];
  return ends.map(([outward, most]) => {
    if (camera.orthographic) {
      return { normal: outward, offset: dot(outward, camera.eye) + (most * camera.height) / 2 };
    }
    const normal = along(outward, forward, -most * tangent(camera));
    return { normal, offset: dot(normal, camera.eye) };
  });
}

/** Returns a camera relative to a point. */
export function relativeTo(camera: CameraState, shift: Vec3): CameraState {
  return { ...camera, eye: sub(camera.eye, shift), target: sub(camera.target, shift) };
}

/** Returns bounds relative to a point. */
export const moved = (bounds: { lower: Vec3; upper: Vec3 }, by: Vec3) => ({
  lower: add(bounds.lower, by),
  upper: add(bounds.upper, by),
});
