/** Section planes: what they leave of a ray and of the scene, in float64. */

import type { Axis, CutPlane, Ray, Vec3 } from "../types.ts";
import { along, AXES, axisVector, cross, dot, middle, scale, sub, unit, type Bounds } from "./vec.ts";

/** The half of space that a section plane leaves: normal · x <= offset, with the offset from `point`. */
export interface HalfSpace {
  point: Vec3;
  normal: Vec3;
}

/** Returns what each plane that is on leaves; its normal points to what is cut away. */
export function halfSpaces(planes: readonly CutPlane[]): HalfSpace[] {
  return planes.filter((plane) => plane.on).map(halfSpace);
}

/** Returns what a plane leaves, on or off. */
export function halfSpace(plane: CutPlane): HalfSpace {
  const sign = plane.flip ? -1 : 1;
  if (plane.axis !== "free") {
    const normal = axisVector(plane.axis);
    return { point: scale(normal, plane.at), normal: scale(normal, sign) };
  }
  return { point: plane.point ?? [0, 0, 0], normal: scale(unit(plane.normal ?? [0, 0, 1]), sign) };
}

/** Returns the ray limited to what the planes leave; null where they leave nothing of it. */
export function limitRay(ray: Ray, spaces: readonly HalfSpace[]): Ray | null {
  let { tMin, tMax } = ray;
  for (const { point, normal } of spaces) {
    const speed = dot(normal, ray.direction);
    const room = dot(normal, sub(point, ray.origin));
    if (speed > 0) tMax = Math.min(tMax, room / speed);
    else if (speed < 0) tMin = Math.max(tMin, room / speed);
    else if (room < 0) return null;
  }
  return tMin <= tMax ? { ...ray, tMin, tMax } : null;
}

/** Returns the range of t of a line within bounds; null outside. */
export function rangeInBounds(origin: Vec3, direction: Vec3, bounds: Bounds): [number, number] | null {
  const spaces = AXES.flatMap((axis, a): HalfSpace[] => [
    { point: scale(axisVector(axis), bounds.upper[a]), normal: axisVector(axis) },
    { point: scale(axisVector(axis), bounds.lower[a]), normal: scale(axisVector(axis), -1) },
  ]);
  const range = limitRay({ origin, direction, tMin: -Infinity, tMax: Infinity }, spaces);
  return range && [range.tMin, range.tMax];
}

/** Returns two directions of length 1 within a plane. */
export function within(normal: Vec3): [Vec3, Vec3] {
  const least = [0, 1, 2].reduce((best, a) => (Math.abs(normal[a]) < Math.abs(normal[best]) ? a : best), 0);
  const first = unit(cross(normal, axisVector(AXES[least] as Axis)));
  return [first, cross(normal, first)];
}

/** Returns the corners in order of the part of a plane within bounds; fewer than three where they do not meet. */
export function planeInBounds(plane: HalfSpace, bounds: Bounds): Vec3[] {
  const [u, v] = within(plane.normal);
  const reach = 2 * (Math.hypot(...sub(bounds.upper, bounds.lower)) + Math.hypot(...sub(plane.point, middle(bounds))));
  const corner = (p: number, q: number) => along(along(plane.point, u, p * reach), v, q * reach);
  let polygon = [corner(-1, -1), corner(1, -1), corner(1, 1), corner(-1, 1)];
  for (let a = 0; a < 3; a++) {
    polygon = clip(polygon, a, bounds.upper[a], 1);
    polygon = clip(polygon, a, bounds.lower[a], -1);
  }
  return polygon;
}

/** Returns a polygon without what is past a coordinate on an axis (Sutherland and Hodgman, 1974). */
function clip(polygon: Vec3[], axis: number, limit: number, sign: 1 | -1): Vec3[] {
  const room = (p: Vec3) => sign * (limit - p[axis]);
  return polygon.flatMap((p, i) => {
    const q = polygon[(i + 1) % polygon.length];
    const [here, next] = [room(p), room(q)];
    const left: Vec3[] = here >= 0 ? [p] : [];
    if (here >= 0 !== next >= 0) left.push(along(p, sub(q, p), here / (here - next)));
    return left;
  });
}

/** Returns a free plane moved along its normal so that it follows a ray of the pointer. */
export function movePlane(plane: CutPlane, from: Vec3, ray: Ray): CutPlane {
  const normal = unit(plane.normal ?? [0, 0, 1]);
  return { ...plane, point: nearestOnLine(from, normal, ray) };
}

/** Returns the point of a line that is nearest to a ray's line; `point` where they are parallel. */
export function nearestOnLine(point: Vec3, direction: Vec3, ray: Ray): Vec3 {
  const between = sub(ray.origin, point);
  const b = dot(direction, ray.direction);
  const d = dot(ray.direction, ray.direction);
  const determinant = d - b * b;
  if (determinant < 1e-9 * d) return point;
  const s = (d * dot(direction, between) - b * dot(ray.direction, between)) / determinant;
  return along(point, direction, s);
}

/** Returns a free plane turned so that its normal points to where a ray meets a sphere about its point. */
export function turnPlane(plane: CutPlane, radius: number, ray: Ray): CutPlane {
  const centre = plane.point ?? [0, 0, 0];
  const direction = unit(ray.direction);
  const from = sub(centre, ray.origin);
  const foot = along(ray.origin, direction, dot(from, direction));
  const off = sub(foot, centre);
  const back = Math.sqrt(Math.max(0, radius * radius - dot(off, off)));
  // The half of the sphere on which the normal is now, so that a drag does not turn it over.
  const side = dot(plane.normal ?? [0, 0, 1], direction) > 0 ? 1 : -1;
  return { ...plane, normal: unit(along(off, direction, side * back)) };
}
