/** The numbers of one ray and one primitive, exact. */

import type { Explanation, Hit, Ray, SceneModel } from "./types.ts";

export function explainHit(_model: SceneModel, _ray: Ray, _hit: Hit): Explanation {
  throw new Error("not yet");
}
