/** The layers that draw a scene: one for each kind of geometry, however many geometries there are. */

import type { Geometry, InstancesGeometry, SceneModel } from "../types.ts";
import { BoxLayer, boxRows, joinedBoxes } from "./boxes.ts";
import { copiedRows, trianglesOf } from "./copies.ts";
import { GridLayer } from "./grid.ts";
import type { Layer } from "./layer.ts";
import { joinedMeshes, MeshLayer, meshRows } from "./mesh.ts";
import { planeRows } from "./planes.ts";
import type { SharedUniforms } from "./program.ts";
import type { Bounds } from "./vec.ts";

/** The most `Instances` that are drawn by matrices; the copies of others are triangles among the others. */
const MOST_INSTANCED = 2;
/** The most triangles of such copies. */
const MOST_COPIED = 500_000;

/** Makes a layer that may use a share of the draw calls of a picture. */
type Maker = (share: number) => Layer;

/** Returns the layers of a scene relative to its shift; what is infinite ends at the bounds. */
export function layersOf(model: SceneModel, bounds: Bounds, shared: SharedUniforms): Layer[] {
  const { geometries, shift, palette = null } = model;
  const of = <T extends Geometry["type"]>(type: T) => geometries.filter((one) => isDrawn(one, type));
  const boxes = of("boxes").map((one) => boxRows(one, shift, bounds));
  const { instanced, copied } = divided(of("instances"));
  const grids = of("grid");
  const meshes = [
    ...of("mesh").map((one) => meshRows(one, shift, palette)),
    ...of("planes").map((one) => planeRows(one, bounds, shift)),
    ...copied.map((one) => copiedRows(one, shift, palette)),
  ];
  const makers: Maker[] = [
    ...some(boxes, (share) => BoxLayer.ofRows(joinedBoxes(boxes), shared, share)),
    ...some(grids, (share) => new GridLayer(grids, shift, shared, share)),
    ...some(meshes, (share) => new MeshLayer(joinedMeshes(meshes), shared, share)),
    ...instanced.map((one): Maker => (share) => copiesLayer(one, model, shared, share)),
  ];
  return makers.map((make) => make(1 / makers.length));
}

function isDrawn<T extends Geometry["type"]>(one: Geometry, type: T): one is Extract<Geometry, { type: T }> {
  return one.type === type && one.primitives > 0 && (one.type !== "instances" || one.base.primitives > 0);
}

function some(rows: readonly unknown[], make: Maker): Maker[] {
  return rows.length > 0 ? [make] : [];
}

/** Divides instances into those with the most triangles, drawn by matrices, and those that are copied. */
function divided(all: InstancesGeometry[]): { instanced: InstancesGeometry[]; copied: InstancesGeometry[] } {
  const order = all.slice().sort((a, b) => trianglesOf(b) - trianglesOf(a));
  const instanced = order.slice(0, MOST_INSTANCED);
  const copied: InstancesGeometry[] = [];
  let total = 0;
  for (const one of order.slice(MOST_INSTANCED)) {
    total += trianglesOf(one);
    (total <= MOST_COPIED ? copied : instanced).push(one);
  }
  return { instanced, copied };
}

function copiesLayer(
  copies: InstancesGeometry,
  { shift, palette = null }: SceneModel,
  shared: SharedUniforms,
  share: number,
): Layer {
  const { base } = copies;
  if (base.type === "boxes") return BoxLayer.ofCopies({ ...copies, base }, shift, shared, share);
  return new MeshLayer(meshRows(base, [0, 0, 0], palette), shared, share, copies, shift);
}
