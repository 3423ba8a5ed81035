/** Where the eye is, and which ray a pixel has: pure functions in float64. */

import type { Axis, CameraState, Ray, StandardView, Vec3 } from "../types.ts";
import type { Reach } from "./hull.ts";
import { add, along, axisVector, corners, cross, dot, length, rotate, scale, sub, unit, type Bounds } from "./vec.ts";

export interface Insets {
  top: number;
  right: number;
  bottom: number;
  left: number;
}

/** The picture on the page in CSS pixels, and what panels cover of it. */
export interface Viewport {
  width: number;
  height: number;
  insets: Insets;
}

/** The directions of the picture: to the right, up, and into it. */
export interface Basis {
  right: Vec3;
  up: Vec3;
  forward: Vec3;
}

/** The eye stays so far from the poles, in radians, that up and right are defined. */
const POLE = 1e-5;
const SMALLEST_FREE = 80;
const MARGIN = 0.92;

/** Returns the directions of a scene with this axis up: right, away and up, seen from the front. */
export function sceneDirections(up: Axis): { right: Vec3; away: Vec3; up: Vec3 } {
  const directions: Record<Axis, [Vec3, Vec3]> = {
    x: [[0, 1, 0], [0, 0, 1]],
    y: [[1, 0, 0], [0, 0, -1]],
    z: [[1, 0, 0], [0, 1, 0]],
  };
  const [right, away] = directions[up];
  return { right, away, up: axisVector(up) };
}

/** Returns the direction from the target to the eye of a standard view. */
export function standardDirection(view: StandardView, up: Axis): Vec3 {
  const scene = sceneDirections(up);
  const directions: Record<StandardView, Vec3> = {
    front: scale(scene.away, -1),
    back: scene.away,
    left: scale(scene.right, -1),
    right: scene.right,
    top: along(scene.up, scene.away, -POLE),
    bottom: along(scale(scene.up, -1), scene.away, -POLE),
    iso: along(along(scale(scene.away, -1), scene.right, 0.75), scene.up, 0.65),
  };
  return unit(directions[view]);
}

export function basisOf(camera: CameraState): Basis {
  const forward = unit(sub(camera.target, camera.eye));
  let side = cross(forward, axisVector(camera.up));
  if (length(side) < POLE / 10) side = sceneDirections(camera.up).right;
  const right = unit(side);
  return { right, up: cross(right, forward), forward };
}

/** Returns the tangent of half the field of view. */
export const tangent = (camera: CameraState): number => Math.tan((camera.fov * Math.PI) / 360);

export const distanceOf = (camera: CameraState): number => length(sub(camera.eye, camera.target));

/** Returns the camera with its height and its distance in agreement: the one that is drawn wins. */
export function consistent(camera: CameraState): CameraState {
  const tan = tangent(camera);
  if (!camera.orthographic) return { ...camera, height: 2 * tan * distanceOf(camera) };
  const distance = camera.height / (2 * tan);
  // What agrees stays to the bit, so that a link gives the same rays.
  if (Math.abs(distance - distanceOf(camera)) < 1e-9 * distance) return camera;
  return { ...camera, eye: along(camera.target, basisOf(camera).forward, -distance) };
}

/** Returns the rectangle that panels leave free; all of the picture where they leave next to nothing. */
export function freeRectangle(view: Viewport): { x: number; y: number; width: number; height: number } {
  const { top, right, bottom, left } = view.insets;
  const [width, height] = [view.width - left - right, view.height - top - bottom];
  const wide = width >= SMALLEST_FREE;
  const high = height >= SMALLEST_FREE;
  return {
    x: wide ? left : 0,
    y: high ? top : 0,
    width: wide ? width : view.width,
    height: high ? height : view.height,
  };
}

/** Returns the pixel of the target: the middle of what is free. */
export function principalPoint(view: Viewport): { x: number; y: number } {
  const free = freeRectangle(view);
  return { x: free.x + free.width / 2, y: free.y + free.height / 2 };
}

/** Returns how far right and up of the target a pixel is, in half heights of the picture. */
function fromMiddle(view: Viewport, x: number, y: number): [number, number] {
  const middle = principalPoint(view);
  const half = view.height / 2;
  return [(x - middle.x) / half, (middle.y - y) / half];
}

/** Returns the ray of a pixel, from the eye; orthographic, from in front of `scene`. Its direction has length 1. */
export function pixelRay(camera: CameraState, view: Viewport, x: number, y: number, scene: Bounds): Ray {
  const { right, up, forward } = basisOf(camera);
  const [u, v] = fromMiddle(view, x, y);
  if (!camera.orthographic) {
    const tan = tangent(camera);
    const direction = unit(along(along(forward, right, u * tan), up, v * tan));
    return { origin: [...camera.eye], direction, tMin: 0, tMax: Infinity };
  }
  const half = camera.height / 2;
  const origin = along(along(camera.eye, right, u * half), up, v * half);
  return {
    origin: along(origin, forward, depthRange(camera, scene).near),
    direction: forward,
    tMin: 0,
    tMax: Infinity,
  };
}

/** Where a point is on the page, and how deep along the view; not in front of the eye: depth is not positive. */
export interface Projected {
  x: number;
  y: number;
  depth: number;
}

/** Returns a function that gives the pixel of points in scene coordinates. */
export function projector(camera: CameraState, view: Viewport): (point: Vec3) => Projected {
  const { right, up, forward } = basisOf(camera);
  const middle = principalPoint(view);
  const half = view.height / 2;
  const tan = tangent(camera);
  return (point) => {
    const from = sub(point, camera.eye);
    const depth = dot(from, forward);
    const size = half / (camera.orthographic ? camera.height / 2 : depth * tan);
    return { x: middle.x + dot(from, right) * size, y: middle.y - dot(from, up) * size, depth };
  };
}

/** Returns the distances along the view between which all of a scene is; of perspective, in front of the eye. */
export function depthRange(camera: CameraState, scene: Bounds): { near: number; far: number } {
  const { forward } = basisOf(camera);
  const depths = corners(scene).map((corner) => dot(sub(corner, camera.eye), forward));
  const size = length(sub(scene.upper, scene.lower)) || 1;
  const [first, last] = [Math.min(...depths) - 0.01 * size, Math.max(...depths) + 0.01 * size];
  if (camera.orthographic) return { near: first, far: last };
  const nearest = Math.min(0.02 * distanceOf(camera), 0.002 * size);
  const near = Math.max(first, nearest);
  return { near, far: Math.max(last, 2 * near) };
}

/** Returns the camera turned about a point: to the left by `azimuth`, up by `polar`, in radians. */
export function orbit(camera: CameraState, pivot: Vec3, azimuth: number, polar: number): CameraState {
  const up = axisVector(camera.up);
  const { right, forward } = basisOf(camera);
  const angle = Math.acos(Math.min(1, Math.max(-1, -dot(forward, up))));
  const allowed = Math.min(Math.max(angle - polar, POLE), Math.PI - POLE) - angle;
  const turn = (point: Vec3): Vec3 => {
    const tilted = rotate(sub(point, pivot), right, allowed);
    return add(pivot, rotate(tilted, up, -azimuth));
  };
  return { ...camera, eye: turn(camera.eye), target: turn(camera.target) };
}

/** Returns the camera moved so that the plane of `depth` follows the pointer by some pixels. */
export function pan(
  camera: CameraState,
  view: Viewport,
  dx: number,
  dy: number,
  depth = distanceOf(camera),
): CameraState {
  const { right, up } = basisOf(camera);
  const height = camera.orthographic ? camera.height : 2 * tangent(camera) * depth;
  const size = height / view.height;
  const move = along(scale(right, -dx * size), up, dy * size);
  return { ...camera, eye: add(camera.eye, move), target: add(camera.target, move) };
}

/** Returns the camera nearer to a point by a factor; the point stays at its pixel. */
export function zoom(camera: CameraState, point: Vec3, factor: number, smallest: number): CameraState {
  const least = smallest / Math.max(distanceOf(camera), 1e-300);
  const s = Math.max(factor, Math.min(least, 1));
  const move = (from: Vec3): Vec3 => along(point, sub(from, point), s);
  return consistent({ ...camera, eye: move(camera.eye), target: move(camera.target), height: camera.height * s });
}

/** Returns the camera with the target as deep in the view as a point; the picture stays. */
export function withTargetAt(camera: CameraState, point: Vec3): CameraState {
  const { forward } = basisOf(camera);
  const depth = dot(sub(point, camera.eye), forward);
  if (camera.orthographic) {
    const move = scale(forward, depth - distanceOf(camera));
    return { ...camera, eye: add(camera.eye, move), target: add(camera.target, move) };
  }
  return depth > 0 ? consistent({ ...camera, target: along(camera.eye, forward, depth) }) : camera;
}

/** Returns the camera from a direction such that what reaches so far just fills what panels leave free. */
export function fit(camera: CameraState, view: Viewport, reach: Reach, toEye: Vec3): CameraState {
  const looking = { ...camera, eye: toEye, target: [0, 0, 0] as Vec3 };
  const basis = basisOf(looking);
  const free = freeRectangle(view);
  const tan = tangent(camera) * MARGIN;
  const [wide, high] = [(tan * free.width) / view.height, (tan * free.height) / view.height];
  // All at once: each call goes through all that is drawn.
  const { right, up, forward } = basis;
  const sides = [along(right, forward, wide), along(right, forward, -wide), along(up, forward, high), along(up, forward, -high)];
  const [x, y, z, ...ends] = reach([right, up, forward, ...sides]);
  const eye = camera.orthographic ? fitOrthographic([x, y, z], wide, high) : fitPerspective(ends, wide, high);
  const depth = (z[0] + z[1]) / 2 - eye[2];
  const place = add(add(scale(basis.right, eye[0]), scale(basis.up, eye[1])), scale(basis.forward, eye[2]));
  const fitted = { ...looking, eye: place, target: along(place, basis.forward, depth) };
  return consistent({ ...fitted, height: 2 * tangent(camera) * depth });
}

/** Returns the eye (right, up, forward) nearest to what its pyramid of two half-angles contains, from the ends at its sides. */
function fitPerspective([[left], [, right], [bottom], [, top]]: [number, number][], wide: number, high: number): Vec3 {
  const away = Math.min((left - right) / (2 * wide), (bottom - top) / (2 * high));
  // Between the two sides that touch: the same room on both.
  return [(left + right) / 2, (bottom + top) / 2, away];
}

function fitOrthographic([x, y, z]: [number, number][], wide: number, high: number): Vec3 {
  const distance = Math.max((x[1] - x[0]) / (2 * wide), (y[1] - y[0]) / (2 * high));
  return [(x[0] + x[1]) / 2, (y[0] + y[1]) / 2, (z[0] + z[1]) / 2 - distance];
}
