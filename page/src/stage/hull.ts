/** How far objects reach along directions: the camera is fitted to what is drawn, not to a box around it. */

import type { BoxesGeometry, Geometry, GridGeometry, InstancesGeometry, MeshGeometry, SceneModel, Vec3 } from "../types.ts";
import { baseBounds, cellIndex, transformed } from "./bounds.ts";
import type { HalfSpace } from "./cut.ts";
import { type Grouped, grouped, rowsOf } from "./group.ts";
import { type Bounds, corners, dot, emptyBounds, include, isEmpty, sub } from "./vec.ts";

/** Returns the least and the greatest dot product of points with each direction. */
export type Reach = (directions: readonly Vec3[]) => [number, number][];

type Visit = (x: number, y: number, z: number) => void;

/** Returns the reach of some points. */
export function reachOf(points: readonly Vec3[]): Reach {
  return reach((visit) => points.forEach((point) => visit(...point)));
}

/** Returns the reach of the objects that are shown, as far as they are within the limits. */
export function drawnReach(model: SceneModel, shown: (object: number) => boolean, limits: Bounds): Reach {
  const own = model.geometries.map((geometry) => {
    const free = geometry.type === "grid" ? geometry.visible : null;
    const all = free ?? new Uint32Array(geometry.objects).map((_, i) => i);
    return all.filter((i) => shown(geometry.firstObject + i));
  });
  return reach((visit) => {
    model.geometries.forEach((geometry, at) => {
      if (geometry.type === "planes") visitBox(limits.lower, limits.upper, limits, visit);
      else visitObjects(geometry, own[at], limits, visit);
    });
  });
}

/** Returns the bounds of some objects; empty where they have none, such as planes. */
export function objectBounds(model: SceneModel, objects: Iterable<number>): Bounds {
  const [lower, upper] = model.bounds;
  const chosen = [...new Set(objects)];
  const bounds = emptyBounds();
  for (const geometry of model.geometries) {
    const own = chosen.map((object) => object - geometry.firstObject).filter((i) => i >= 0 && i < geometry.objects);
    visitObjects(geometry, own, { lower, upper }, (x, y, z) => include(bounds, x, y, z));
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

/** Numbers in typed arrays, without arrays for points: there may be millions of corners. */
function reach(visitAll: (visit: Visit) => void): Reach {
  return (directions) => {
    const parts = Float64Array.from(directions.flat());
    const low = new Float64Array(directions.length).fill(Infinity);
    const high = new Float64Array(directions.length).fill(-Infinity);
    visitAll((x, y, z) => {
      for (let k = 0; k < low.length; k++) {
        const along = x * parts[3 * k] + y * parts[3 * k + 1] + z * parts[3 * k + 2];
        if (along < low[k]) low[k] = along;
        if (along > high[k]) high[k] = along;
      }
    });
    return directions.map((_, k) => [low[k], high[k]]);
  };
}

/** Visits the corners of objects, numbered within their geometry. */
function visitObjects(geometry: Geometry, own: ArrayLike<number>, limits: Bounds, visit: Visit): void {
  if (own.length === 0) return;
  const visitOne = visitorOf(geometry, limits, visit);
  for (let k = 0; k < own.length; k++) visitOne(own[k]);
}

/** Visits the corners of all objects of a geometry. */
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
      return () => {};
  }
}

/** Visits the corners of what limits leave of a box, whose numbers are from `at` on; none if they leave nothing. */
function visitBox(low: ArrayLike<number>, high: ArrayLike<number>, limits: Bounds, visit: Visit, at = 0): void {
  const { lower, upper } = limits;
  for (let a = 0; a < 3; a++) if (!(low[at + a] <= upper[a] && high[at + a] >= lower[a])) return;
  const [x0, x1] = [Math.max(low[at], lower[0]), Math.min(high[at], upper[0])];
  const [y0, y1] = [Math.max(low[at + 1], lower[1]), Math.min(high[at + 1], upper[1])];
  const [z0, z1] = [Math.max(low[at + 2], lower[2]), Math.min(high[at + 2], upper[2])];
  for (let k = 0; k < 8; k++) visit(k & 1 ? x1 : x0, k & 2 ? y1 : y0, k & 4 ? z1 : z0);
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
      for (let end = k; end < k + 3; end++) visit(clamp(end, 0), clamp(end, 1), clamp(end, 2));
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
    if (isInside) for (const p of moved) visit(...(p.map((x, a) => Math.min(upper[a], Math.max(lower[a], x))) as Vec3));
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
