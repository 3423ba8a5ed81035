/** Boxes and triangles: candidates by float64, contacts by integers. */

import type { BoxesGeometry, MeshGeometry } from "../types.ts";
import { boxContact, crossingOf, type Contact, type Line, type Range } from "./contact.ts";
import { SlabFilter } from "./filter.ts";
import type { Query, Target } from "./found.ts";
import { TriangleFilter } from "./triangle_filter.ts";

export class BoxesTarget implements Target {
  constructor(
    private readonly geometry: number,
    private readonly boxes: BoxesGeometry,
  ) {}

  find(query: Query): void {
    const { geometry, boxes } = this;
    for (const row of new SlabFilter(query.ray).rows(boxes.lower, boxes.upper)) {
      if (!query.canHit(boxes.firstObject + row)) continue;
      const contact = contactOfBox(query.line, query.range, boxes, row);
      if (contact !== null) query.found.push({ geometry, object: row, index: row, primitive: row, contact });
    }
  }
}

export class MeshTarget implements Target {
  private readonly filter: TriangleFilter;

  constructor(
    private readonly geometry: number,
    private readonly mesh: MeshGeometry,
  ) {
    this.filter = new TriangleFilter(mesh.vertices, mesh.faces);
  }

  find(query: Query): void {
    const { geometry, mesh } = this;
    for (const row of this.filter.rows(query.ray)) {
      const object = mesh.triangleObjects[row];
      if (!query.canHit(mesh.firstObject + object)) continue;
      const contact = contactOfTriangle(query.line, query.range, mesh, row);
      if (contact !== null) query.found.push({ geometry, object, index: row, primitive: row, contact });
    }
  }
}

export function contactOfBox(line: Line, range: Range, boxes: BoxesGeometry, row: number): Contact | null {
  const [first, end] = [3 * row, 3 * row + 3];
  return boxContact(line, range, boxes.lower.subarray(first, end), boxes.upper.subarray(first, end));
}

export function contactOfTriangle(line: Line, range: Range, mesh: MeshGeometry, row: number): Contact | null {
  const crossing = crossingOf(line, cornersOf(mesh, row));
  if (crossing === null || !crossing.isIn(range)) return null;
  return { first: crossing.time, enter: crossing.time, leave: crossing.time };
}

/** Returns the nine coordinates of a triangle. */
export function cornersOf({ vertices, faces }: MeshGeometry, row: number): number[] {
  const corners = faces.subarray(3 * row, 3 * row + 3);
  return Array.from({ length: 9 }, (_, k) => vertices[3 * corners[Math.floor(k / 3)] + (k % 3)]);
}
