/** Bounds of objects and of the middle of a cloud, in scene coordinates. */

import type {
  BoxesGeometry,
  Geometry,
  GridGeometry,
  InstancesGeometry,
  MeshGeometry,
  SceneModel,
  Vec3,
} from "../types.ts";
import { type Grouped, grouped, rowsOf } from "./group.ts";
import type { HalfSpace } from "./cut.ts";
import { corners, dot, emptyBounds, include, isEmpty, sub, type Bounds } from "./vec.ts";

/** The part of a cloud left out at each end of each axis when the view fits it. */
const TAIL = 0.03;
const SAMPLE = 20_000;

/** Returns the bounds of some objects; empty where they have none, such as planes. */
export function objectBounds(model: SceneModel, objects: Iterable<number>): Bounds {
  const chosen = new Set(objects);
  const bounds = emptyBounds();
  for (const geometry of model.geometries) {
    const own = [...chosen]
      .map((object) => object - geometry.firstObject)
      .filter((i) => i >= 0 && i < geometry.objects);
    if (own.length > 0) includeObjects(geometry, own, bounds);
  }
  const [lower, upper] = model.bounds;
  for (let a = 0; a < 3; a++) {
    if (isEmpty(bounds)) break;
    bounds.lower[a] = Math.max(bounds.lower[a], lower[a]);
    bounds.upper[a] = Math.min(bounds.upper[a], upper[a]);
  }
  return bounds;
}

/** Returns whether all of an object is on the side that one of the planes cuts away. */
export function isCutAway(model: SceneModel, object: number, spaces: readonly HalfSpace[]): boolean {
  if (spaces.length === 0) return false;
  const bounds = objectBounds(model, [object]);
  if (isEmpty(bounds)) return false;
  const points = corners(bounds);
  return spaces.some(({ point, normal }) => points.every((corner) => dot(normal, sub(corner, point)) > 0));
}

function includeObjects(geometry: Geometry, own: number[], bounds: Bounds): void {
  switch (geometry.type) {
    case "boxes":
      return own.forEach((i) => includeBox(geometry, i, bounds));
    case "mesh":
      return own.forEach((i) => includeTriangles(geometry, i, bounds));
    case "instances":
      return includeCopies(geometry, own, bounds);
    case "grid":
      return includeCells(geometry, own, bounds);
    case "planes":
  }
}

function includeBox(boxes: BoxesGeometry, i: number, bounds: Bounds): void {
  for (const ends of [boxes.lower, boxes.upper]) include(bounds, ends[3 * i], ends[3 * i + 1], ends[3 * i + 2]);
  for (let a = 0; a < 3; a++) {
    if (boxes.lower[3 * i + a] === -Infinity) bounds.lower[a] = -Infinity;
    if (boxes.upper[3 * i + a] === Infinity) bounds.upper[a] = Infinity;
  }
}

const TRIANGLES = new WeakMap<MeshGeometry, Grouped>();

function includeTriangles(mesh: MeshGeometry, own: number, bounds: Bounds): void {
  const { faces, vertices } = mesh;
  const triangles = TRIANGLES.get(mesh) ?? grouped(mesh.triangleObjects, mesh.objects);
  TRIANGLES.set(mesh, triangles);
  for (const triangle of rowsOf(triangles, own)) {
    for (let k = 0; k < 3; k++) {
      const at = 3 * faces[3 * triangle + k];
      include(bounds, vertices[at], vertices[at + 1], vertices[at + 2]);
    }
  }
}

function includeCopies(copies: InstancesGeometry, own: number[], bounds: Bounds): void {
  const base = baseBounds(copies.base);
  if (isEmpty(base)) return;
  for (const i of own) {
    for (let k = 0; k < 8; k++) {
      const p: Vec3 = [0, 1, 2].map((a) => ((k >> a) & 1 ? base.upper[a] : base.lower[a])) as Vec3;
      include(bounds, ...transformed(copies.transforms, i, p));
    }
  }
}

/** Returns the bounds of all of a base. */
export function baseBounds(base: BoxesGeometry | MeshGeometry): Bounds {
  const bounds = emptyBounds();
  const points = base.type === "boxes" ? [base.lower, base.upper] : [base.vertices];
  for (const rows of points)
    for (let i = 0; i < rows.length; i += 3) include(bounds, rows[i], rows[i + 1], rows[i + 2]);
  return bounds;
}

/** Returns a point of the base where a copy has it. */
export function transformed(transforms: Float64Array, copy: number, p: Vec3): Vec3 {
  const row = (a: number) => {
    const at = 12 * copy + 4 * a;
    return transforms[at] * p[0] + transforms[at + 1] * p[1] + transforms[at + 2] * p[2] + transforms[at + 3];
  };
  return [row(0), row(1), row(2)];
}

function includeCells(grid: GridGeometry, own: number[], bounds: Bounds): void {
  const { cells, edges } = grid;
  if (cells === null) {
    include(bounds, edges[0][0], edges[1][0], edges[2][0]);
    include(bounds, edges[0].at(-1)!, edges[1].at(-1)!, edges[2].at(-1)!);
    return;
  }
  for (const i of own) {
    const [x, y, z] = cellIndex(grid, cells[i]);
    include(bounds, edges[0][x], edges[1][y], edges[2][z]);
    include(bounds, edges[0][x + 1], edges[1][y + 1], edges[2][z + 1]);
  }
}

/** Returns the index on each axis of a cell, by its number in C order. */
export function cellIndex(grid: GridGeometry, cell: number): Vec3 {
  const [ny, nz] = [grid.edges[1].length - 1, grid.edges[2].length - 1];
  return [Math.floor(cell / (ny * nz)), Math.floor(cell / nz) % ny, cell % nz];
}

/** Returns the bounds of the middle 94 % of points on each axis, from an even sample. */
export function middleOfPoints(xyz: Float64Array): Bounds {
  const bounds = emptyBounds();
  const count = xyz.length / 3;
  const step = Math.max(1, Math.floor(count / SAMPLE));
  for (let a = 0; a < 3; a++) {
    const values = new Float64Array(Math.ceil(count / step));
    for (let i = 0, k = 0; i < count; i += step) values[k++] = xyz[3 * i + a];
    values.sort();
    bounds.lower[a] = values[Math.floor(TAIL * (values.length - 1))];
    bounds.upper[a] = values[Math.ceil((1 - TAIL) * (values.length - 1))];
  }
  return bounds;
}
