/** Exact answers of rays, bit for bit those of `raybox.Scene.all`. */

import type { Answer, Geometry, Hit, Ray, SceneModel } from "../types.ts";
import { BoxesTarget, MeshTarget } from "./boxes.ts";
import { isEmpty } from "./contact.ts";
import { Query, type Found, type Target } from "./found.ts";
import { GridTarget } from "./grid.ts";
import { InstancesTarget } from "./instances.ts";

export interface ExactHit extends Hit {
  /** Of a copy the box or triangle of its base; else the primitive. */
  inner: number;
}

/** Hits in an answer at most; `total` counts all. */
export const MOST_HITS = 10_000;

export class Engine {
  private readonly targets: Target[];

  constructor(private readonly model: Pick<SceneModel, "geometries">) {
    this.targets = model.geometries.map(targetOf);
  }

  /** Returns what a ray hits, of the objects that can be hit: one byte an object of the scene; null for all. */
  cast(ray: Ray, pickable: Uint8Array | null): Answer & { hits: ExactHit[] } {
    if (![...ray.origin, ...ray.direction].every(Number.isFinite)) throw new Error("the numbers of a ray must be finite");
    const query = new Query(ray, pickable);
    if (!isEmpty(ray)) for (const target of this.targets) target.find(query);
    const found = query.sorted();
    const hits = found.slice(0, MOST_HITS).map((hit) => this.rounded(query, hit));
    return { ray, hits, total: found.length, row: null };
  }

  private rounded(query: Query, { geometry, object, index, primitive, contact }: Found): ExactHit {
    return {
      object: this.model.geometries[geometry].firstObject + object,
      geometry,
      primitive: index,
      inner: primitive,
      t: query.firstOf(contact),
      tEnter: contact.enter.value,
      tExit: contact.leave.value,
    };
  }
}

function targetOf(geometry: Geometry, k: number): Target {
  switch (geometry.type) {
    case "boxes":
      return new BoxesTarget(k, geometry);
    case "mesh":
      return new MeshTarget(k, geometry);
    case "instances":
      return new InstancesTarget(k, geometry);
    case "grid":
      return new GridTarget(k, geometry);
    case "planes":
      throw new Error("the page does not pick planes");
  }
}
