/** Planes, as far as the scene reaches. */

import type { Geometry, PlanesGeometry, Vec3 } from "../types.ts";
import { type HalfSpace, planeInBounds } from "./cut.ts";
import { type MeshRows, ownerRow } from "./mesh.ts";
import { along, type Bounds, corners, diagonal, dot, include, sub, unit } from "./vec.ts";

/** The part of the scene's size by which planes go past it. */
const PAST = 0.02;

/** Returns bounds that planes near them meet: widened by the feet of their corners on planes that do not. */
export function boundsWithPlanes(bounds: Bounds, geometries: readonly Geometry[]): Bounds {
  const wide = { lower: [...bounds.lower] as Vec3, upper: [...bounds.upper] as Vec3 };
  const planes = geometries.filter((geometry) => geometry.type === "planes").flatMap(halfSpacesOf);
  for (const plane of planes) {
    const heights = corners(bounds).map((corner) => dot(plane.normal, sub(corner, plane.point)));
    const apart = Math.min(...heights) > 0 || Math.max(...heights) < 0;
    const near = Math.min(...heights.map(Math.abs)) <= diagonal(bounds);
    if (!apart || !near) continue;
    corners(bounds).forEach((corner, k) => include(wide, ...along(corner, plane.normal, -heights[k])));
  }
  return wide;
}

function halfSpacesOf(planes: PlanesGeometry): HalfSpace[] {
  const at = (rows: Float64Array, i: number) => [...rows.subarray(3 * i, 3 * i + 3)] as Vec3;
  return Array.from({ length: planes.points.length / 3 }, (_, i) => ({
    point: at(planes.points, i),
    normal: unit(at(planes.normals, i)),
  }));
}

/** Returns the polygons of planes within bounds, as triangles with their outlines as edges. */
export function planeRows(planes: PlanesGeometry, bounds: Bounds, shift: Vec3): MeshRows {
  const points: number[] = [];
  const owners: number[] = [];
  const faces: number[] = [];
  const edges: number[] = [];
  const reach = widened(bounds);
  const objects = Array.from({ length: planes.points.length / 3 }, (_, i) => planes.firstObject + i);
  halfSpacesOf(planes).forEach((plane, i) => {
    const polygon = planeInBounds(plane, reach);
    const first = points.length / 3;
    polygon.forEach((point, k) => {
      points.push(...sub(point, shift));
      owners.push(i);
      edges.push(first + k, first + ((k + 1) % polygon.length));
      if (k > 1) faces.push(first, first + k - 1, first + k);
    });
  });
  return {
    points: Float32Array.from(points),
    owners: Uint32Array.from(owners),
    objects: Float32Array.from(objects.flatMap((object) => ownerRow(object, object, diagonal(bounds)))),
    faces: Uint32Array.from(faces),
    edges: Uint32Array.from(edges),
  };
}

function widened(bounds: Bounds): Bounds {
  const size = sub(bounds.upper, bounds.lower);
  return { lower: along(bounds.lower, size, -PAST), upper: along(bounds.upper, size, PAST) };
}
