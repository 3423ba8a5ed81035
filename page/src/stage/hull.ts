/** How far what is drawn reaches along directions: the camera is fitted to it, not to a box around it. */

import type { BoxesGeometry, Geometry, GridGeometry, InstancesGeometry, MeshGeometry, SceneModel, Vec3 } from "../types.ts";
import { baseBounds, cellIndex, transformed } from "./bounds.ts";
import { type Bounds, corners } from "./vec.ts";

/** Returns the least and the greatest dot product of points with each direction. */
export type Reach = (directions: readonly Vec3[]) => [number, number][];

type Visit = (x: number, y: number, z: number) => void;

/** Returns the reach of some points. */
export function reachOf(points: readonly Vec3[]): Reach {
  return reach((visit) => points.forEach((point) => visit(...point)));
}

/** Returns the reach of the objects whose byte is not 0, as far as they are within the limits. */
export function drawnReach(model: SceneModel, shown: (object: number) => boolean, limits: Bounds): Reach {
  return reach((visit) => {
    for (const geometry of model.geometries) visitGeometry(geometry, shown, limits, visit);
  });
}

/** Returns the bounds without what planes across an axis cut away. */
export function limitsOf(bounds: Bounds, cut: readonly { axis: string; on: boolean; at: number; flip: boolean }[]): Bounds {
  const [lower, upper] = [[...bounds.lower] as Vec3, [...bounds.upper] as Vec3];
  for (const { axis, on, at, flip } of cut) {
    const a = "xyz".indexOf(axis);
    if (!on || a < 0) continue;
    if (flip) lower[a] = Math.max(lower[a], Math.min(at, upper[a]));
    else upper[a] = Math.min(upper[a], Math.max(at, lower[a]));
  }
  return { lower, upper };
}

function reach(visitAll: (visit: Visit) => void): Reach {
  return (directions) => {
    const ends = directions.map((): [number, number] => [Infinity, -Infinity]);
    visitAll((x, y, z) => {
      for (let k = 0; k < ends.length; k++) {
        const [dx, dy, dz] = directions[k];
        const along = x * dx + y * dy + z * dz;
        if (along < ends[k][0]) ends[k][0] = along;
        if (along > ends[k][1]) ends[k][1] = along;
      }
    });
    return ends;
  };
}

function visitGeometry(geometry: Geometry, shown: (object: number) => boolean, limits: Bounds, visit: Visit): void {
  const isShown = (i: number) => shown(geometry.firstObject + i);
  switch (geometry.type) {
    case "boxes":
      return visitBoxes(geometry, isShown, limits, visit);
    case "mesh":
      return visitTriangles(geometry, isShown, limits, visit);
    case "instances":
      return visitCopies(geometry, isShown, limits, visit);
    case "grid":
      return visitCells(geometry, isShown, limits, visit);
    case "planes":
      return visitBox(limits.lower, limits.upper, limits, visit);
  }
}

/** Visits the corners of what limits leave of a box, whose numbers are from `at` on; none if they leave nothing. */
function visitBox(low: ArrayLike<number>, high: ArrayLike<number>, limits: Bounds, visit: Visit, at = 0): void {
  const { lower, upper } = limits;
  for (let a = 0; a < 3; a++) if (!(low[at + a] <= upper[a] && high[at + a] >= lower[a])) return;
  // No arrays: there may be a million boxes.
  const end = (k: number, a: number) => ((k >> a) & 1 ? Math.min(high[at + a], upper[a]) : Math.max(low[at + a], lower[a]));
  for (let k = 0; k < 8; k++) visit(end(k, 0), end(k, 1), end(k, 2));
}

type Shown = (i: number) => boolean;

function visitBoxes({ lower, objects, upper }: BoxesGeometry, shown: Shown, limits: Bounds, visit: Visit): void {
  for (let i = 0; i < objects; i++) {
    if (shown(i)) visitBox(lower, upper, limits, visit, 3 * i);
  }
}

function visitTriangles(mesh: MeshGeometry, shown: Shown, { lower, upper }: Bounds, visit: Visit): void {
  const { faces, triangleObjects, vertices } = mesh;
  const clamp = (at: number, a: number) => Math.min(upper[a], Math.max(lower[a], vertices[at + a]));
  const isOutside = (k: number, a: number) => {
    const values = [0, 1, 2].map((corner) => vertices[3 * faces[k + corner] + a]);
    return Math.max(...values) < lower[a] || Math.min(...values) > upper[a];
  };
  for (let k = 0; k < faces.length; k += 3) {
    if (!shown(triangleObjects[k / 3]) || isOutside(k, 0) || isOutside(k, 1) || isOutside(k, 2)) continue;
    for (let corner = 0; corner < 3; corner++) {
      const at = 3 * faces[k + corner];
      visit(clamp(at, 0), clamp(at, 1), clamp(at, 2));
    }
  }
}

function visitCopies({ base, objects, transforms }: InstancesGeometry, shown: Shown, limits: Bounds, visit: Visit): void {
  const points = corners(baseBounds(base));
  const { lower, upper } = limits;
  for (let copy = 0; copy < objects; copy++) {
    if (!shown(copy)) continue;
    const moved = points.map((point) => transformed(transforms, copy, point));
    const isInside = [0, 1, 2].every((a) => moved.some((p) => p[a] >= lower[a]) && moved.some((p) => p[a] <= upper[a]));
    if (isInside) for (const p of moved) visit(...(p.map((x, a) => Math.min(upper[a], Math.max(lower[a], x))) as Vec3));
  }
}

function visitCells(grid: GridGeometry, shown: Shown, limits: Bounds, visit: Visit): void {
  const { cells, edges, visible } = grid;
  if (cells === null || visible === null) {
    return visitBox(edges.map((one) => one[0]), edges.map((one) => one.at(-1)!), limits, visit);
  }
  for (const i of visible) {
    if (!shown(i)) continue;
    const place = cellIndex(grid, cells[i]);
    visitBox(place.map((at, a) => edges[a][at]), place.map((at, a) => edges[a][at + 1]), limits, visit);
  }
}
