/** The camera by keys: arrows turn it about its target, plus and minus bring it nearer. */

import type { CameraState, Vec3 } from "./types.ts";

const STEP = Math.PI / 24;
/** The camera never looks along the up axis itself, where left and right have no meaning. */
const STEEPEST = Math.PI / 2 - 0.01;

type Turn = (camera: CameraState) => CameraState;
export const CAMERA_KEYS: Record<string, Turn> = {
  ArrowLeft: (camera) => turned(camera, -STEP, 0),
  ArrowRight: (camera) => turned(camera, STEP, 0),
  ArrowUp: (camera) => turned(camera, 0, STEP),
  ArrowDown: (camera) => turned(camera, 0, -STEP),
  "+": (camera) => scaled(camera, 0.8),
  "-": (camera) => scaled(camera, 1.25),
};

/** Turn the eye about the up axis, and raise it; distance and target stay. */
export function turned(camera: CameraState, around: number, rise: number): CameraState {
  const up = "xyz".indexOf(camera.up);
  const [a, b] = [(up + 1) % 3, (up + 2) % 3];
  const away = camera.eye.map((value, axis) => value - camera.target[axis]);
  const distance = Math.hypot(...away);
  const azimuth = Math.atan2(away[b], away[a]) + around;
  const elevation = Math.asin(away[up] / distance) + rise;
  const steep = Math.min(STEEPEST, Math.max(-STEEPEST, elevation));
  const eye: Vec3 = [...camera.eye];
  eye[a] = camera.target[a] + distance * Math.cos(steep) * Math.cos(azimuth);
  eye[b] = camera.target[b] + distance * Math.cos(steep) * Math.sin(azimuth);
  eye[up] = camera.target[up] + distance * Math.sin(steep);
  return { ...camera, eye };
}

/** Bring the eye nearer to its target by a factor below 1. */
export function scaled(camera: CameraState, factor: number): CameraState {
  const eye = camera.eye.map((value, axis) => camera.target[axis] + factor * (value - camera.target[axis])) as Vec3;
  return { ...camera, eye, height: camera.height * factor };
}
