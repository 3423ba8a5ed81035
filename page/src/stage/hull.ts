/** How far objects reach along directions: the camera is fitted to what is drawn, not to a box around it. */

import type { BoxesGeometry, Geometry, GridGeometry, InstancesGeometry, MeshGeometry, SceneModel, Vec3 } from "../types.ts";
import { baseBounds, cellIndex, transformed } from "./bounds.ts";
import type { HalfSpace } from "./cut.ts";
import { type Grouped, grouped, rowsOf } from "./group.ts";
import { type Bounds, corners, dot, emptyBounds, include, isEmpty, sub } from "./vec.ts";

/** Returns the least and the greatest dot product of points with each direction. */
export type Reach = (directions: readonly Vec3[]) => [number, number][];

/** Takes a box across the axes; a point is one without a size. */
type Visit = (x0: number, y0: number, z0: number, x1: number, y1: number, z1: number) => void;

/** Returns the reach of some points. */
export function reachOf(points: readonly Vec3[]): Reach {
  return reach((visit) => points.forEach((point) => visit(...point, ...point)));
}

/** Returns the reach of the objects that are shown, as far as they are within the limits. */
export function drawnReach(model: SceneModel, shown: (object: number) => boolean, limits: Bounds): Reach {
  return reach((visit) => {
    for (const geometry of model.geometries) {
      const drawn = geometry.type === "grid" ? geometry.visible : null;
      const visitOne = visitorOf(geometry, limits, visit);
      for (let k = 0; k < (drawn?.length ?? geometry.objects); k++) {
        const i = drawn?.[k] ?? k;
        if (shown(geometry.firstObject + i)) visitOne(i);
      }
    }
  });
}

/** Returns the bounds of some objects; empty where they have none, such as planes. */
export function objectBounds(model: SceneModel, objects: Iterable<number>): Bounds {
  const [lower, upper] = model.bounds;
  const chosen = [...new Set(objects)];
  const bounds = emptyBounds();
  for (const geometry of model.geometries) {
    if (geometry.type === "planes") continue;
    const own = chosen.map((object) => object - geometry.firstObject).filter((i) => i >= 0 && i < geometry.objects);
    visitObjects(geometry, own, { lower, upper }, into(bounds));
  }
  return bounds;
}

/** Returns whether all of an object is on the side that one of the planes cuts away. */
export function isCutAway(model: SceneModel, object: number, spaces: readonly HalfSpace[]): boolean {
  if (spaces.length === 0) return false;
  const bounds = objectBounds(model, [object]);
  const points = isEmpty(bounds) ? [] : corners(bounds);
  return points.length > 0 && spaces.some(({ point, normal }) => points.every((corner) => dot(normal, sub(corner, point)) > 0));
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

/** Returns a visitor that widens bounds. */
export function into(bounds: Bounds): Visit {
  return (x0, y0, z0, x1, y1, z1) => {
    include(bounds, x0, y0, z0);
    include(bounds, x1, y1, z1);
  };
}

/** Numbers in typed arrays, and of a box only the corners that are farthest: there may be millions. */
function reach(visitAll: (visit: Visit) => void): Reach {
  return (directions) => {
    const parts = Float64Array.from(directions.flat());
    const low = new Float64Array(directions.length).fill(Infinity);
    const high = new Float64Array(directions.length).fill(-Infinity);
    visitAll((x0, y0, z0, x1, y1, z1) => {
      for (let k = 0; k < low.length; k++) {
        const x = parts[3 * k], y = parts[3 * k + 1], z = parts[3 * k + 2];
        const least = x * (x > 0 ? x0 : x1) + y * (y > 0 ? y0 : y1) + z * (z > 0 ? z0 : z1);
        const most = x * (x > 0 ? x1 : x0) + y * (y > 0 ? y1 : y0) + z * (z > 0 ? z1 : z0);
        if (least < low[k]) low[k] = least;
        if (most > high[k]) high[k] = most;
      }
    });
    return directions.map((_, k) => [low[k], high[k]]);
  };
}

/** Visits what bounds objects, numbered within their geometry. */
function visitObjects(geometry: Geometry, own: ArrayLike<number>, limits: Bounds, visit: Visit): void {
  if (own.length === 0) return;
  const visitOne = visitorOf(geometry, limits, visit);
  for (let k = 0; k < own.length; k++) visitOne(own[k]);
}

/** Visits what bounds all objects of a geometry. */
export function visitAll(geometry: Geometry, visit: Visit): void {
  const visitOne = visitorOf(geometry, { lower: [-Infinity, -Infinity, -Infinity], upper: [Infinity, Infinity, Infinity] }, visit);
  for (let i = 0; i < geometry.objects; i++) visitOne(i);
}

function visitorOf(geometry: Geometry, limits: Bounds, visit: Visit): (i: number) => void {
  switch (geometry.type) {
    case "boxes":
      return boxVisitor(geometry, limits, visit);
    case "mesh":
      return triangleVisitor(geometry, limits, visit);
    case "instances":
      return copyVisitor(geometry, limits, visit);
    case "grid":
      return cellVisitor(geometry, limits, visit);
    case "planes":
      return () => visitBox(limits.lower, limits.upper, limits, visit);
  }
}

/** Visits what limits leave of a box, whose numbers are from `at` on; none if they leave nothing. */
function visitBox(low: ArrayLike<number>, high: ArrayLike<number>, limits: Bounds, visit: Visit, at = 0): void {
  const { lower, upper } = limits;
  for (let a = 0; a < 3; a++) if (!(low[at + a] <= upper[a] && high[at + a] >= lower[a])) return;
  const least = (a: number) => Math.max(low[at + a], lower[a]);
  const most = (a: number) => Math.min(high[at + a], upper[a]);
  visit(least(0), least(1), least(2), most(0), most(1), most(2));
}

function boxVisitor({ lower, upper }: BoxesGeometry, limits: Bounds, visit: Visit): (i: number) => void {
  return (i) => visitBox(lower, upper, limits, visit, 3 * i);
}

const TRIANGLES = new WeakMap<MeshGeometry, Grouped>();

function triangleVisitor(mesh: MeshGeometry, { lower, upper }: Bounds, visit: Visit): (i: number) => void {
  const { faces, vertices } = mesh;
  const triangles = TRIANGLES.get(mesh) ?? grouped(mesh.triangleObjects, mesh.objects);
  TRIANGLES.set(mesh, triangles);
  const at = (k: number, a: number) => vertices[3 * faces[k] + a];
  const clamp = (k: number, a: number) => Math.min(upper[a], Math.max(lower[a], at(k, a)));
  const isOutside = (k: number, a: number) =>
    Math.max(at(k, a), at(k + 1, a), at(k + 2, a)) < lower[a] || Math.min(at(k, a), at(k + 1, a), at(k + 2, a)) > upper[a];
  return (i) => {
    for (const triangle of rowsOf(triangles, i)) {
      const k = 3 * triangle;
      if (isOutside(k, 0) || isOutside(k, 1) || isOutside(k, 2)) continue;
      for (let end = k; end < k + 3; end++) {
        const [x, y, z] = [clamp(end, 0), clamp(end, 1), clamp(end, 2)];
        visit(x, y, z, x, y, z);
      }
    }
  };
}

function copyVisitor({ base, transforms }: InstancesGeometry, limits: Bounds, visit: Visit): (i: number) => void {
  const bounds = baseBounds(base);
  const points = isEmpty(bounds) ? [] : corners(bounds);
  const { lower, upper } = limits;
  return (copy) => {
    const moved = points.map((point) => transformed(transforms, copy, point));
    const isInside = [0, 1, 2].every((a) => moved.some((p) => p[a] >= lower[a]) && moved.some((p) => p[a] <= upper[a]));
    const clamped = (p: Vec3) => p.map((x, a) => Math.min(upper[a], Math.max(lower[a], x))) as Vec3;
    if (isInside) for (const p of moved.map(clamped)) visit(...p, ...p);
  };
}

function cellVisitor(grid: GridGeometry, limits: Bounds, visit: Visit): (i: number) => void {
  const { cells, edges } = grid;
  if (cells === null) return () => visitBox(edges.map((one) => one[0]), edges.map((one) => one.at(-1)!), limits, visit);
  return (i) => {
    const place = cellIndex(grid, cells[i]);
    visitBox(place.map((at, a) => edges[a][at]), place.map((at, a) => edges[a][at + 1]), limits, visit);
  };
}
