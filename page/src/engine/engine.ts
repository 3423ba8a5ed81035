/** Exact answers of rays, as `raybox.Scene.all` gives them. */

import type { Answer, Ray, SceneModel } from "../types.ts";

export class Engine {
  constructor(private readonly model: SceneModel) {}

  cast(_ray: Ray, _pickable: Uint8Array | null): Answer {
    throw new Error(`not yet: ${this.model.name}`);
  }
}
