/** Triangles whose vertices are of one object, and whose last vertex has their colour. */

import type { MeshGeometry } from "../types.ts";

/** Faces in vertices of which those after the mesh's repeat others. */
export interface Split {
  faces: Uint32Array;
  /** For each vertex its row of `owners`: objects, each with each row of the palette that its triangles have. */
  owner: Uint32Array;
  owners: { object: number; paletteRow: number }[];
  /** The vertices that are repeated. */
  copied: number[];
}

const NONE = -1;

/**
 * Returns faces with vertices of their own for each object, and for its translucent part.
 *
 * What is flat in a triangle is that of its last vertex: triangles are turned until that has their colour, and a vertex
 * is repeated only where all three have others.
 */
export function splitByOwner(mesh: MeshGeometry, palette: Uint8Array | null): Split {
  const { owners, ownerOf } = ownersOf(mesh);
  const count = mesh.vertices.length / 3;
  const [groups, owner, next] = [0, 1, 2].map(() => new Array<number>(count).fill(NONE));
  const isLast = new Array<boolean>(count).fill(false);
  const copied: number[] = [];
  const copy = (vertex: number) => {
    for (const list of [groups, owner, next]) list.push(NONE);
    return count + copied.push(vertex) - 1;
  };
  const takes = (at: number, own: number) => !isLast[at] || owner[at] === own;
  /** Returns the first of a vertex and its copies that is free or of a group, as a last one also of an owner. */
  const find = (vertex: number, group: number, own: number, last: boolean) => {
    let at = vertex;
    while (groups[at] !== NONE && !(groups[at] === group && (!last || takes(at, own)))) {
      if (next[at] === NONE) next[at] = copy(vertex);
      at = next[at];
    }
    if (groups[at] === NONE || last) owner[at] = own;
    groups[at] = group;
    if (last) isLast[at] = true;
    return at;
  };
  const faces = new Uint32Array(mesh.faces.length);
  for (let i = 0; i < faces.length; i += 3) {
    const own = ownerOf[i / 3];
    const { object, paletteRow } = owners[own];
    const group = 2 * object + (paletteRow > 0 && palette![4 * paletteRow + 3] < 255 ? 1 : 0);
    for (let k = 0; k < 3; k++) faces[i + k] = find(mesh.faces[i + k], group, own, false);
    const last = takes(faces[i + 2], own) ? 2 : takes(faces[i], own) ? 0 : takes(faces[i + 1], own) ? 1 : 2;
    const end = find(mesh.faces[i + last], group, own, true);
    const [from, to] = [faces[i + ((last + 1) % 3)], faces[i + ((last + 2) % 3)]];
    [faces[i], faces[i + 1], faces[i + 2]] = [from, to, end];
  }
  return { faces, owner: Uint32Array.from(owner, (row) => Math.max(row, 0)), owners, copied };
}

/** Returns all objects of a mesh without colours; of another, the objects with each of their colours. */
function ownersOf({ objects, paletteRows, triangleObjects }: MeshGeometry) {
  const owners: Split["owners"] = [];
  if (!paletteRows) {
    for (let object = 0; object < objects; object++) owners.push({ object, paletteRow: 0 });
    return { owners, ownerOf: triangleObjects };
  }
  const rows = new Map<number, number>();
  const ownerOf = triangleObjects.map((object, i) => {
    const key = object * 2 ** 16 + paletteRows[i];
    if (!rows.has(key)) rows.set(key, owners.push({ object, paletteRow: paletteRows[i] }) - 1);
    return rows.get(key)!;
  });
  return { owners, ownerOf };
}
