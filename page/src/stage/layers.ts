/** The layer that draws each kind of geometry. */

import type { BoxesGeometry, Geometry, InstancesGeometry, MeshGeometry, Vec3 } from "../types.ts";
import { BoxLayer, boxRows } from "./boxes.ts";
import { GridLayer } from "./grid.ts";
import type { Layer } from "./layer.ts";
import { MeshLayer, meshRows } from "./mesh.ts";
import { planeRows } from "./planes.ts";
import type { SharedUniforms } from "./program.ts";
import type { Bounds } from "./vec.ts";

const NOTHING: Layer = { parts: () => [], bytes: 0, dispose: () => undefined };

/** Returns the layer of a geometry relative to a point; what is infinite ends at the bounds. */
export function layerOf(geometry: Geometry, bounds: Bounds, shift: Vec3, shared: SharedUniforms): Layer {
  if (geometry.primitives === 0) return NOTHING;
  switch (geometry.type) {
    case "boxes":
      return BoxLayer.ofRows(boxRows(geometry, shift, bounds), shared);
    case "mesh":
      return new MeshLayer(meshRows(geometry, shift), shared);
    case "instances":
      return copiesLayer(geometry, shift, shared);
    case "grid":
      return new GridLayer(geometry, shift, shared);
    case "planes":
      return new MeshLayer(planeRows(geometry, bounds, shift), shared);
  }
}

function copiesLayer(copies: InstancesGeometry, shift: Vec3, shared: SharedUniforms): Layer {
  const { base } = copies;
  if (base.primitives === 0) return NOTHING;
  if (base.type === "boxes") return BoxLayer.ofCopies(copies as Copies<BoxesGeometry>, shift, shared);
  return new MeshLayer(meshRows(base as MeshGeometry, [0, 0, 0]), shared, copies, shift);
}

type Copies<Base> = InstancesGeometry & { base: Base };
