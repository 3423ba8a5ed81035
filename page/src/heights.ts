/** The height of each object: the middle of its bounds along the vertical, in float64. */

import type { Geometry, GridGeometry, InstancesGeometry, MeshGeometry, SceneModel } from "./types.ts";

const made = new WeakMap<Geometry[], Float64Array>();

/** Heights of all objects; NaN where an object reaches to infinity. Made at the first call. */
export function heights(model: SceneModel): Float64Array {
  let found = made.get(model.geometries);
  if (!found) {
    found = new Float64Array(model.objects).fill(NaN);
    for (const geometry of model.geometries) {
      write(geometry, found.subarray(geometry.firstObject, geometry.firstObject + geometry.objects));
    }
    made.set(model.geometries, found);
  }
  return found;
}

function write(geometry: Geometry, out: Float64Array): void {
  if (geometry.type === "boxes") {
    for (let box = 0; box < out.length; box++)
      out[box] = middle(geometry.lower[3 * box + 2], geometry.upper[3 * box + 2]);
  } else if (geometry.type === "mesh") ofMesh(geometry, out);
  else if (geometry.type === "instances") ofInstances(geometry, out);
  else if (geometry.type === "grid") ofGrid(geometry, out);
}

function middle(low: number, high: number): number {
  const value = (low + high) / 2;
  return Number.isFinite(value) ? value : NaN;
}

function ofMesh({ faces, vertices, triangleObjects }: MeshGeometry, out: Float64Array): void {
  const low = new Float64Array(out.length).fill(Infinity);
  const high = new Float64Array(out.length).fill(-Infinity);
  for (let corner = 0; corner < faces.length; corner++) {
    const object = triangleObjects[Math.floor(corner / 3)];
    const z = vertices[3 * faces[corner] + 2];
    low[object] = Math.min(low[object], z);
    high[object] = Math.max(high[object], z);
  }
  for (let object = 0; object < out.length; object++) out[object] = middle(low[object], high[object]);
}

/** Copies of one shape lie as their origins do. */
function ofInstances({ transforms }: InstancesGeometry, out: Float64Array): void {
  for (let copy = 0; copy < out.length; copy++) out[copy] = transforms[12 * copy + 11];
}

function ofGrid({ cells, edges }: GridGeometry, out: Float64Array): void {
  const z = edges[2];
  if (!cells) return;
  for (let object = 0; object < out.length; object++) {
    const level = cells[object] % (z.length - 1);
    out[object] = middle(z[level], z[level + 1]);
  }
}
