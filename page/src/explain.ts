/** The explanation of one ray and one primitive, as text. */

import { el } from "./dom.ts";
import type { Explanation, Hit, Ray, SceneModel } from "./types.ts";

export function drawExplanation(_model: SceneModel, _ray: Ray, _hit: Hit, explanation: Explanation): HTMLElement {
  return el("pre", {}, explanation.text);
}
