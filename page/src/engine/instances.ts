/** Transformed copies: candidates by images of their base in float64, contacts in the base's own coordinates. */

import type { BoxesGeometry, InstancesGeometry, MeshGeometry, Ray } from "../types.ts";
import { contactOfBox, contactOfTriangle } from "./boxes.ts";
import type { Contact, Integers, Line } from "./contact.ts";
import { cross, dot, minus, ratio, vector, whole, type Whole3 } from "./exact.ts";
import { SlabFilter } from "./filter.ts";
import type { Query, Target } from "./found.ts";
import { Time } from "./time.ts";
import { TriangleFilter } from "./triangle_filter.ts";

/**
 * A computed image is within 4.1 u of the sum of the sizes of its four terms, u = 2**-53; eight u are its margin.
 *
 * Where the image overflows so does that sum, which is added up in the same order: the margin is infinite.
 */
const IMAGE_MARGIN = 2 ** -50;
const TINY = 2 ** -1000;

/**
 * The line of a ray in the coordinates of a copy's base, in integers over one scale.
 *
 * A copy is the image under p -> A p + b: the ray's image under the inverse hits the base at the same t. By Cramer's
 * rule inv(A) (o - b) and inv(A) d are integers over det(A) and powers of two.
 */
export class LocalLine implements Line {
  private readonly origin: Whole3;
  private readonly direction: Whole3;
  private readonly scale: bigint;

  constructor(ray: Ray, matrix: ArrayLike<number>) {
    const m = Array.from(matrix);
    const { integers: a, shift: aShift } = whole([0, 1, 2, 4, 5, 6, 8, 9, 10].map((k) => m[k]));
    const rows = [vector(a, 0), vector(a, 3), vector(a, 6)];
    const columns = [cross(rows[1], rows[2]), cross(rows[2], rows[0]), cross(rows[0], rows[1])];
    const det = dot(rows[0], columns[0]);
    const { integers: p, shift: pShift } = whole([...ray.origin, m[3], m[7], m[11]]);
    const { integers: d, shift: dShift } = whole(ray.direction);
    const sign = det > 0n ? 1n : -1n;
    const moved = minus(vector(p, 0), vector(p, 3));
    this.origin = combined(columns, moved, (sign << aShift) << dShift);
    this.direction = combined(columns, vector(d, 0), (sign << aShift) << pShift);
    this.scale = ((sign * det) << pShift) << dShift;
  }

  sign(axis: number): number {
    const d = this.direction[axis];
    return d > 0n ? 1 : d < 0n ? -1 : 0;
  }

  isBetween(axis: number, lower: number, upper: number): boolean {
    const { origin, points } = this.integers([lower, upper, 0]);
    return points[0][0] <= origin[axis] && origin[axis] <= points[0][1];
  }

  timeOf(axis: number, plane: number): Time {
    const { origin, direction, points } = this.integers([plane, 0, 0]);
    return Time.of(ratio(points[0][0] - origin[axis], direction[axis]));
  }

  integers(points: readonly number[]): Integers {
    const { integers, shift } = whole(points);
    const scaled = integers.map((x) => x * this.scale);
    const found: Whole3[] = [];
    for (let k = 0; k < scaled.length; k += 3) found.push(vector(scaled, k));
    return { origin: shifted(this.origin, shift), direction: shifted(this.direction, shift), points: found };
  }
}

function shifted([x, y, z]: Whole3, shift: bigint): Whole3 {
  return [x << shift, y << shift, z << shift];
}

function combined(columns: Whole3[], factors: Whole3, scale: bigint): Whole3 {
  const part = (k: number) => scale * dot(factors, [columns[0][k], columns[1][k], columns[2][k]]);
  return [part(0), part(1), part(2)];
}

/** Bounds of images of boxes, padded by what rounding may move them. */
class ImageBounds {
  readonly lower: Float64Array;
  readonly upper: Float64Array;

  constructor(boxes: number) {
    this.lower = new Float64Array(3 * boxes);
    this.upper = new Float64Array(3 * boxes);
  }

  /** Sets a row to the bounds of the image of a box under the matrix that begins at `m`. */
  set(row: number, matrices: Float64Array, m: number, lower: ArrayLike<number>, upper: ArrayLike<number>): void {
    for (let axis = 0; axis < 3; axis++) {
      const first = m + 4 * axis;
      let low = matrices[first + 3];
      let high = low;
      let size = Math.abs(low);
      for (let k = 0; k < 3; k++) {
        const one = matrices[first + k] * lower[k];
        const other = matrices[first + k] * upper[k];
        low += Math.min(one, other);
        high += Math.max(one, other);
        size += Math.max(Math.abs(one), Math.abs(other));
      }
      this.lower[3 * row + axis] = low - (IMAGE_MARGIN * size + TINY);
      this.upper[3 * row + axis] = high + (IMAGE_MARGIN * size + TINY);
    }
  }
}

/** The boxes or triangles of a base: which of them may a ray hit in one copy, and where does it? */
interface Base {
  candidates(slabs: SlabFilter, ray: Ray, matrices: Float64Array, copy: number): Iterable<number>;
  contact(line: Line, query: Query, row: number): Contact | null;
}

class BoxBase implements Base {
  private readonly image = new ImageBounds(1);

  constructor(private readonly boxes: BoxesGeometry) {}

  *candidates(slabs: SlabFilter, _ray: Ray, matrices: Float64Array, copy: number): Iterable<number> {
    const { lower, upper } = this.boxes;
    const { lower: l, upper: u } = this.image;
    for (let k = 0; k < lower.length; k += 3) {
      this.image.set(0, matrices, 12 * copy, lower.subarray(k, k + 3), upper.subarray(k, k + 3));
      if (slabs.mayHit(l[0], l[1], l[2], u[0], u[1], u[2])) yield k / 3;
    }
  }

  contact(line: Line, query: Query, row: number): Contact | null {
    return contactOfBox(line, query.range, this.boxes, row);
  }
}

class MeshBase implements Base {
  private readonly vertices: Float64Array;
  private readonly errors: Float64Array;
  private readonly filter: TriangleFilter;

  constructor(private readonly mesh: MeshGeometry) {
    this.vertices = new Float64Array(mesh.vertices.length);
    this.errors = new Float64Array(mesh.vertices.length / 3);
    this.filter = new TriangleFilter(this.vertices, mesh.faces);
  }

  candidates(_slabs: SlabFilter, ray: Ray, matrices: Float64Array, copy: number): Iterable<number> {
    this.transform(matrices, 12 * copy);
    return this.filter.rows(ray, this.errors);
  }

  contact(line: Line, query: Query, row: number): Contact | null {
    return contactOfTriangle(line, query.range, this.mesh, row);
  }

  private transform(matrices: Float64Array, first: number): void {
    const from = this.mesh.vertices;
    for (let i = 0; i < from.length; i += 3) {
      let largest = 0;
      for (let axis = 0; axis < 3; axis++) {
        const m = first + 4 * axis;
        const x = matrices[m] * from[i];
        const y = matrices[m + 1] * from[i + 1];
        const z = matrices[m + 2] * from[i + 2];
        this.vertices[i + axis] = x + y + z + matrices[m + 3];
        largest = Math.max(largest, Math.abs(x) + Math.abs(y) + Math.abs(z) + Math.abs(matrices[m + 3]));
      }
      this.errors[i / 3] = IMAGE_MARGIN * largest + TINY;
    }
  }
}

export class InstancesTarget implements Target {
  private readonly base: Base;
  private readonly bounds: ImageBounds;

  constructor(
    private readonly geometry: number,
    private readonly instances: InstancesGeometry,
  ) {
    const { base, transforms } = instances;
    this.base = base.type === "boxes" ? new BoxBase(base) : new MeshBase(base);
    this.bounds = new ImageBounds(transforms.length / 12);
    const { lower, upper } = boundsOf(base);
    for (let row = 0; row < transforms.length / 12; row++) this.bounds.set(row, transforms, 12 * row, lower, upper);
  }

  find(query: Query): void {
    const { bounds, instances, base } = this;
    const slabs = new SlabFilter(query.ray);
    for (const copy of slabs.rows(bounds.lower, bounds.upper)) {
      if (!query.canHit(instances.firstObject + copy)) continue;
      this.findIn(query, copy, base.candidates(slabs, query.ray, instances.transforms, copy));
    }
  }

  private findIn(query: Query, copy: number, rows: Iterable<number>): void {
    let line: LocalLine | null = null;
    for (const primitive of rows) {
      line ??= new LocalLine(query.ray, this.instances.transforms.subarray(12 * copy, 12 * copy + 12));
      const contact = this.base.contact(line, query, primitive);
      if (contact !== null) {
        query.found.push({ geometry: this.geometry, object: copy, index: copy, primitive, contact });
      }
    }
  }
}

/** Returns the bounds of the boxes or vertices of a base. */
function boundsOf(base: BoxesGeometry | MeshGeometry): { lower: number[]; upper: number[] } {
  const lower = [Infinity, Infinity, Infinity];
  const upper = [-Infinity, -Infinity, -Infinity];
  const [lows, highs] = base.type === "boxes" ? [base.lower, base.upper] : [base.vertices, base.vertices];
  for (let i = 0; i < lows.length; i++) {
    lower[i % 3] = Math.min(lower[i % 3], lows[i]);
    upper[i % 3] = Math.max(upper[i % 3], highs[i]);
  }
  return { lower, upper };
}
