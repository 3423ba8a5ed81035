/** The box around everything finite of a scene, which the camera and unbounded things go by. */

import { visitAll } from "./stage/hull.ts";
import type { Geometry, PlanesGeometry, Vec3 } from "./types.ts";

type Ends = [Vec3, Vec3];

/** Returns the corners of the box around all finite coordinates; zeros on an axis without any. */
export function finiteBounds(geometries: readonly Geometry[]): Ends {
  const ends = emptyEnds();
  for (const geometry of geometries) includeGeometry(ends, geometry);
  if (!ends.flat().some(Number.isFinite)) for (const one of geometries) if (one.type === "planes") includePlanes(ends, one);
  const [low, high] = ends;
  const known = (corner: Vec3) => corner.map((value, a) => (low[a] <= high[a] ? value : 0)) as Vec3;
  return [known(low), known(high)];
}

/** Returns the middle of bounds in whole numbers. */
export function wholeMiddle([low, high]: Ends): Vec3 {
  return low.map((value, a) => Math.round(value / 2 + high[a] / 2) + 0) as Vec3; // no -0
}

const emptyEnds = (): Ends => [
  [Infinity, Infinity, Infinity],
  [-Infinity, -Infinity, -Infinity],
];

function include([low, high]: Ends, points: ArrayLike<number>): void {
  for (let i = 0; i < points.length; i++) {
    if (!Number.isFinite(points[i])) continue;
    const a = i % 3;
    if (points[i] < low[a]) low[a] = points[i];
    if (points[i] > high[a]) high[a] = points[i];
  }
}

/** A grid counts with all of its edges, planes not at all. */
function includeGeometry(ends: Ends, geometry: Geometry): void {
  if (geometry.type === "grid") [0, -1].forEach((k) => include(ends, geometry.edges.map((edges) => edges.at(k)!)));
  else visitAll(geometry, (x, y, z) => include(ends, [x, y, z]));
}

/** Planes count by their points nearest to the origin, with as much again around them, at least 1. */
function includePlanes(ends: Ends, { points }: PlanesGeometry): void {
  if (points.length === 0) return;
  const [low, high] = emptyEnds();
  include([low, high], points);
  const pad = Math.max(1, ...low.map((value, a) => high[a] / 2 - value / 2));
  include(ends, low.map((value) => value - pad));
  include(ends, high.map((value) => value + pad));
}
