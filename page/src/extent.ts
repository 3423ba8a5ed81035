/** The box around everything finite of a scene, which the camera and unbounded things go by. */

import { into, visitAll } from "./stage/hull.ts";
import { type Bounds, boundsOf, emptyBounds } from "./stage/vec.ts";
import type { Geometry, PlanesGeometry, Vec3 } from "./types.ts";

type Ends = [Vec3, Vec3];

/** Returns the corners of the box around all finite coordinates; zeros on an axis without any. */
export function finiteBounds(geometries: readonly Geometry[]): Ends {
  const bounds = emptyBounds();
  for (const geometry of geometries) if (geometry.type !== "planes") includeGeometry(bounds, geometry);
  const { lower, upper } = bounds;
  if (![...lower, ...upper].some(Number.isFinite)) for (const one of geometries) if (one.type === "planes") includePlanes(bounds, one);
  const known = (corner: Vec3) => corner.map((value, a) => (lower[a] <= upper[a] ? value : 0)) as Vec3;
  return [known(lower), known(upper)];
}

/** Returns the middle of bounds in whole numbers. */
export function wholeMiddle([low, high]: Ends): Vec3 {
  return low.map((value, a) => Math.round(value / 2 + high[a] / 2) + 0) as Vec3; // no -0
}

/** A grid counts with all of its edges. */
function includeGeometry(bounds: Bounds, geometry: Geometry): void {
  const visit = into(bounds);
  if (geometry.type !== "grid") return visitAll(geometry, visit);
  const [low, high] = [0, -1].map((k) => geometry.edges.map((edges) => edges.at(k)!) as Vec3);
  visit(...low, ...high);
}

/** Planes count by their points nearest to the origin, with as much again around them, at least 1. */
function includePlanes(bounds: Bounds, { points }: PlanesGeometry): void {
  if (points.length === 0) return;
  const own = boundsOf(points, [0, 0, 0]);
  const pad = Math.max(1, ...own.lower.map((value, a) => own.upper[a] / 2 - value / 2));
  const moved = (corner: Vec3, by: number) => corner.map((value) => value + by) as Vec3;
  into(bounds)(...moved(own.lower, -pad), ...moved(own.upper, pad));
}
