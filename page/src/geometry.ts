/** Objects as rows of their geometries. */

import type { Geometry, Hit, SceneModel } from "./types.ts";

/** Number of the geometry of an object; geometries follow one another in their objects. */
export function geometryOf(model: SceneModel, object: number): number {
  return model.geometries.findIndex(
    ({ firstObject, objects }) => object >= firstObject && object < firstObject + objects,
  );
}

/** A miss of the one primitive of an object, with NaN for each t; null if it has several or none. */
export function missOf(model: SceneModel, object: number): Hit | null {
  const geometry = geometryOf(model, object);
  const primitive = geometry < 0 ? null : primitiveOf(model.geometries[geometry], object);
  return primitive === null ? null : { object, geometry, primitive, t: NaN, tEnter: NaN, tExit: NaN };
}

function primitiveOf(geometry: Geometry, object: number): number | null {
  const row = object - geometry.firstObject;
  if (geometry.type === "mesh") return null;
  return geometry.type === "grid" ? (geometry.cells?.[row] ?? null) : row;
}
