/**
 * The float64 test of triangles: on which side of each edge does the line pass?
 *
 * Vertices are projected along the ray, on a plane of two axes: x = p_x d_z - d_x p_z, y = p_y d_z - d_y p_z, where p is
 * the vertex from the origin and z the axis of the direction's largest part. With u = 2**-53, the computed x and y are
 * within `error` = 4 u (|p_x d_z| + |d_x p_z| + |p_y d_z| + |d_y p_z|) of the exact ones (three roundings each). The sign of
 * x_b y_c - y_b x_c is the side of the edge (b, c). It is certain where its size exceeds
 * size_b margin_c + size_c margin_b, with size = |x| + |y| + error and margin = 1.01 error + 4 u (|x| + |y|).
 * A line that is certainly left of one edge and right of another misses the triangle. What underflow loses is less than
 * the constant added to `error`; after an overflow the bound is infinite or NaN, and no side is certain.
 */

import type { Ray } from "../types.ts";
import { SlabFilter } from "./filter.ts";

const MARGIN = 2 ** -51;
const TINY = 2 ** -400;

export class TriangleFilter {
  private readonly x: Float64Array;
  private readonly y: Float64Array;
  private readonly size: Float64Array;
  private readonly margin: Float64Array;

  constructor(
    private readonly vertices: Float64Array,
    private readonly faces: Uint32Array,
  ) {
    const count = vertices.length / 3;
    this.x = new Float64Array(count);
    this.y = new Float64Array(count);
    this.size = new Float64Array(count);
    this.margin = new Float64Array(count);
  }

  /** Returns the triangles that a ray may hit; `errors` bounds how far each vertex may be off, on every axis. */
  rows(ray: Ray, errors: Float64Array | null = null): number[] {
    if (ray.direction.every((d) => d === 0)) return [];
    this.project(ray, errors);
    const slabs = new SlabFilter(ray);
    const found: number[] = [];
    for (let i = 0; i < this.faces.length; i += 3) {
      if (this.mayPass(i) && this.mayReach(slabs, i, errors)) found.push(i / 3);
    }
    return found;
  }

  private project(ray: Ray, errors: Float64Array | null): void {
    const { vertices } = this;
    const sizes = ray.direction.map(Math.abs);
    const c = sizes.indexOf(Math.max(...sizes));
    const [a, b] = [(c + 1) % 3, (c + 2) % 3];
    const [da, db, dc] = [ray.direction[a], ray.direction[b], ray.direction[c]];
    const [oa, ob, oc] = [ray.origin[a], ray.origin[b], ray.origin[c]];
    for (let i = 0, k = 0; i < this.x.length; i++, k += 3) {
      const pc = vertices[k + c] - oc;
      const xa = (vertices[k + a] - oa) * dc;
      const xc = da * pc;
      const ya = (vertices[k + b] - ob) * dc;
      const yc = db * pc;
      const x = (this.x[i] = xa - xc);
      const y = (this.y[i] = ya - yc);
      const off = errors === null ? 0 : 5 * errors[i] * Math.abs(dc);
      const error = MARGIN * (Math.abs(xa) + Math.abs(xc) + Math.abs(ya) + Math.abs(yc)) + off + TINY;
      const size = Math.abs(x) + Math.abs(y);
      this.size[i] = size + error;
      this.margin[i] = 1.01 * error + MARGIN * size;
    }
  }

  /** Returns false only if the line passes between no three edges. */
  private mayPass(i: number): boolean {
    const [a, b, c] = [this.faces[i], this.faces[i + 1], this.faces[i + 2]];
    const first = this.side(a, b);
    const second = this.side(b, c);
    if (first * second < 0) return false;
    const third = this.side(c, a);
    return first * third >= 0 && second * third >= 0;
  }

  /** Returns 1 or -1 for the certain side of an edge, else 0. */
  private side(b: number, c: number): number {
    const { x, y, size, margin } = this;
    const area = x[b] * y[c] - y[b] * x[c];
    const bound = size[b] * margin[c] + size[c] * margin[b];
    return area > bound ? 1 : area < -bound ? -1 : 0;
  }

  /** Returns false only if the ray misses the bounds of the triangle. */
  private mayReach(slabs: SlabFilter, i: number, errors: Float64Array | null): boolean {
    const { vertices: v } = this;
    const [a, b, c] = [this.faces[i], this.faces[i + 1], this.faces[i + 2]];
    const off = errors === null ? 0 : 2 * Math.max(errors[a], errors[b], errors[c]);
    const low = (k: number) => padded(Math.min(v[3 * a + k], v[3 * b + k], v[3 * c + k]), -off);
    const high = (k: number) => padded(Math.max(v[3 * a + k], v[3 * b + k], v[3 * c + k]), off);
    return slabs.mayHit(low(0), low(1), low(2), high(0), high(1), high(2));
  }
}

/** Adds an error; what the sum rounds off is added too. */
function padded(x: number, off: number): number {
  return off === 0 ? x : x + off + Math.sign(off) * MARGIN * Math.abs(x);
}
