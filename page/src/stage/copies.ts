/** Copies of a geometry as triangles of their own. */

import type { BoxesGeometry, InstancesGeometry, Vec3 } from "../types.ts";
import { transformed } from "./bounds.ts";
import { BOX_EDGES } from "./grid.ts";
import { meshRows, type MeshRows, OWNER, ownerRow } from "./mesh.ts";
import { cross, dot, length, sub } from "./vec.ts";

/** Triangles of a box, outward; bit a of a corner: it is upper on axis a. */
const BOX_FACES = [0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5, 0, 1, 5, 0, 5, 4, 2, 6, 7, 2, 7, 3, 0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6];

/** Returns the number of triangles of all copies. */
export function trianglesOf({ base, transforms }: InstancesGeometry): number {
  return ((base.type === "boxes" ? 12 : 1) * base.primitives * transforms.length) / 12;
}

/** Returns the triangles of all copies relative to a point. */
export function copiedRows(copies: InstancesGeometry, shift: Vec3, palette: Uint8Array | null = null): MeshRows {
  const { base, transforms } = copies;
  const rows = meshRows(base.type === "mesh" ? base : asMesh(base), [0, 0, 0], palette);
  const count = transforms.length / 12;
  const inBase = rows.points.length / 3;
  const points = new Float32Array(count * rows.points.length);
  for (let i = 0; i < count * inBase; i++) {
    const from = 3 * (i % inBase);
    const point: Vec3 = [rows.points[from], rows.points[from + 1], rows.points[from + 2]];
    points.set(sub(transformed(transforms, Math.floor(i / inBase), point), shift), 3 * i);
  }
  const axes = Array.from({ length: count }, (_, copy) => axesOf(transforms, copy));
  const sizes = axes.map((own) => Math.max(...own.map(length)));
  const repeat = (indices: Uint32Array, rowsOfEach: number) =>
    Uint32Array.from({ length: count * indices.length }, (_, i) => {
      return indices[i % indices.length] + rowsOfEach * Math.floor(i / indices.length);
    });
  const faces = repeat(rows.faces, inBase);
  const inObjects = rows.objects.length / OWNER;
  const owners = Array.from({ length: inObjects }, (_, i) => rows.objects.subarray(OWNER * i + 2, OWNER * (i + 1)));
  axes.forEach(([x, y, z], copy) => {
    if (dot(cross(x, y), z) < 0) turnOver(faces.subarray(copy * rows.faces.length, (copy + 1) * rows.faces.length));
  });
  return {
    points,
    owners: repeat(rows.owners, inObjects),
    objects: Float32Array.from(sizes.flatMap((size, copy) => {
      const object = copies.firstObject + copy;
      return owners.flatMap(([spacing, paletteRow]) => ownerRow(object, object, size * spacing, paletteRow));
    })),
    faces,
    edges: repeat(rows.edges, inBase),
  };
}

/** Returns the rows of the matrix of a copy without its translation. */
function axesOf(transforms: Float64Array, copy: number): [Vec3, Vec3, Vec3] {
  const row = (a: number): Vec3 => [...transforms.subarray(12 * copy + 4 * a, 12 * copy + 4 * a + 3)] as Vec3;
  return [row(0), row(1), row(2)];
}

/** A mirror turns triangles over: turns them back, with the same last vertex. */
function turnOver(faces: Uint32Array): void {
  for (let i = 0; i < faces.length; i += 3) [faces[i], faces[i + 1]] = [faces[i + 1], faces[i]];
}

/** Returns boxes as triangles of one object. */
function asMesh({ lower, upper, objects, paletteRows }: BoxesGeometry) {
  const corner = (i: number, k: number) => [0, 1, 2].map((a) => ((k >> a) & 1 ? upper : lower)[3 * i + a]);
  const boxes = Array.from({ length: objects }, (_, i) => i);
  const each = (indices: number[]) => Uint32Array.from(boxes.flatMap((i) => indices.map((k) => k + 8 * i)));
  return {
    type: "mesh" as const,
    firstObject: 0,
    objects: 1,
    primitives: 12 * objects,
    vertices: Float64Array.from(boxes.flatMap((i) => [0, 1, 2, 3, 4, 5, 6, 7].flatMap((k) => corner(i, k)))),
    faces: each(BOX_FACES),
    triangleObjects: new Uint32Array(12 * objects),
    edges: each(BOX_EDGES),
    paletteRows: paletteRows && Uint16Array.from({ length: 12 * objects }, (_, i) => paletteRows[Math.floor(i / 12)]),
  };
}
