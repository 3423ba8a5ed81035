/** What the picture draws in its passes: layers of parts. */

import type * as THREE from "three";
import type { Pass } from "./shaders.ts";
import type { Bounds } from "./vec.ts";
import { corners, dot, sub } from "./vec.ts";
import type { Vec3 } from "../types.ts";

/** The view for which parts are chosen; lengths relative to the scene's shift. */
export interface LayerView {
  eye: Vec3;
  forward: Vec3;
  orthographic: boolean;
  /** Pixels of a length of 1, perspective at a distance of 1. */
  pixels: number;
  /** Boxes of fewer pixels are points. */
  dotsBelow: number;
  /** The most boxes of a layer that are not points. */
  mostBoxes: number;
  /** Whether the processor chooses the boxes that are drawn: it is faster where it draws, too. */
  choose: boolean;
  /** Four bytes an object, the last is its opacity. */
  look: Uint8Array;
  /** Of boxes that are points, one in this number is drawn. */
  stride: number;
  cut: boolean;
  /** Planes around the picture; what is outside of one is not in it. */
  sides: readonly { normal: Vec3; offset: number }[];
}

/** One draw call. */
export interface Part {
  object: THREE.Object3D & { material: THREE.Material | THREE.Material[] };
  material: THREE.Material;
  /** Drawn even if the time of a picture is over. */
  always?: boolean;
}

export interface Layer {
  /** Returns what a pass draws, the largest first. */
  parts(pass: Pass, view: LayerView): Part[];
  readonly bytes: number;
  dispose(): void;
}

/** Returns whether some of bounds may be in the picture. */
export function inPicture(bounds: Bounds, view: LayerView): boolean {
  const points = corners(bounds);
  return view.sides.every(({ normal, offset }) => points.some((point) => dot(normal, point) <= offset));
}

/** Returns the pixels of lengths anywhere in bounds: at least, at most. */
export function pixelRange(bounds: Bounds, view: LayerView): [number, number] {
  if (view.orthographic) return [view.pixels, view.pixels];
  const depths = corners(bounds).map((point) => dot(sub(point, view.eye), view.forward));
  const [near, far] = [Math.min(...depths), Math.max(...depths)];
  return [view.pixels / Math.max(far, 1e-6), view.pixels / Math.max(near, 1e-6)];
}
