/** Writes the camera and the cut where all programs read them. */

import type { CameraState, Vec3 } from "../types.ts";
import { sceneDirections } from "./camera.ts";
import type { HalfSpace } from "./cut.ts";
import { MOST_CUTS, type SharedUniforms } from "./program.ts";
import type { Projection } from "./projection.ts";
import { dot, scale, sub } from "./vec.ts";

/** Writes a camera relative to the shift; `pixels` are those of a length of 1, perspective at a distance of 1. */
export function writeCamera(shared: SharedUniforms, camera: CameraState, projection: Projection, pixels: number): void {
  const { right, up, forward } = projection.basis;
  shared.rotation.value.set(...right, ...up, ...scale(forward, -1));
  shared.projection.value.fromArray(projection.matrix);
  shared.eye.value.set(...camera.eye);
  shared.forward.value.set(...forward);
  shared.orthographic.value = camera.orthographic;
  shared.nearest.value = projection.near;
  shared.pixels.value = pixels;
  const scene = sceneDirections(camera.up);
  shared.lightUp.value.set(...scene.up);
  shared.lightSide.value.set(...scene.away);
}

/** Writes what the section planes leave, relative to the eye in scene coordinates. */
export function writeCut(shared: SharedUniforms, spaces: readonly HalfSpace[], eye: Vec3): void {
  const written = spaces.slice(0, MOST_CUTS);
  written.forEach(({ point, normal }, i) => {
    shared.cuts.value[i].set(...normal, dot(normal, sub(point, eye)));
  });
  shared.cutCount.value = written.length;
}
