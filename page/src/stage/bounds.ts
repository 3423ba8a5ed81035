/** Bounds of bases of copies and of the middle of a cloud, and the cells of a grid. */

import type { BoxesGeometry, GridGeometry, MeshGeometry, Vec3 } from "../types.ts";
import { emptyBounds, include, type Bounds } from "./vec.ts";

/** The part of a cloud left out at each end of each axis when the view fits it. */
const TAIL = 0.03;
const SAMPLE = 20_000;

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
