/** Planes, as far as the scene reaches. */

import type { PlanesGeometry, Vec3 } from "../types.ts";
import { planeInBounds } from "./cut.ts";
import type { MeshRows } from "./mesh.ts";
import { along, type Bounds, sub, unit } from "./vec.ts";

/** The part of the scene's size by which planes go past it. */
const PAST = 0.02;

/** Returns the polygons of planes within bounds, as triangles with their outlines as edges. */
export function planeRows(planes: PlanesGeometry, bounds: Bounds, shift: Vec3): MeshRows {
  const points: number[] = [];
  const owners: number[] = [];
  const faces: number[] = [];
  const edges: number[] = [];
  const reach = widened(bounds);
  for (let i = 0; i < planes.points.length / 3; i++) {
    const at = (rows: Float64Array) => [...rows.subarray(3 * i, 3 * i + 3)] as Vec3;
    const polygon = planeInBounds({ point: at(planes.points), normal: unit(at(planes.normals)) }, reach);
    const first = points.length / 3;
    polygon.forEach((point, k) => {
      points.push(...sub(point, shift));
      owners.push(planes.firstObject + i, planes.firstObject + i);
      edges.push(first + k, first + ((k + 1) % polygon.length));
      if (k > 1) faces.push(first, first + k - 1, first + k);
    });
  }
  return {
    points: Float32Array.from(points),
    owners: Uint32Array.from(owners),
    faces: Uint32Array.from(faces),
    edges: Uint32Array.from(edges),
  };
}

function widened(bounds: Bounds): Bounds {
  const size = sub(bounds.upper, bounds.lower);
  return { lower: along(bounds.lower, size, -PAST), upper: along(bounds.upper, size, PAST) };
}
