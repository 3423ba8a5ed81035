/** Answers of a saved page, from the scene in it: exact, or none with the reason. */

import { Engine } from "./engine/engine.ts";
import { makeModel } from "./model.ts";
import type { Answer, Caster, Ray, RaySample, SceneModel, ViewState } from "./types.ts";
import { decodeSaved } from "./wire.ts";

export interface Saved {
  model: SceneModel;
  state: ViewState | null;
}

/** The elements of a saved page that contain its frames and its state. */
const SCENE_ELEMENT = "raybox-scene";
const STATE_ELEMENT = "raybox-state";

/** Returns the scene and the state in a saved page; null in a page that is not saved. */
export async function readSaved(page: Document): Promise<Saved | null> {
  const scene = page.getElementById(SCENE_ELEMENT)?.textContent?.trim();
  if (!scene) return null;
  const state = page.getElementById(STATE_ELEMENT)?.textContent?.trim();
  const model = makeModel(await decodeSaved(scene));
  return { model, state: state ? (JSON.parse(state) as ViewState) : null };
}

export class SavedCaster implements Caster {
  readonly live = false;
  readonly reason: string | null;
  private readonly engine: Engine | null;
  private pickable: Uint8Array | null;

  /** html: the page as it was opened, before anything was added to it. */
  constructor(
    private readonly model: SceneModel,
    private readonly html: string,
  ) {
    this.pickable = model.hiddenAtStart && model.hiddenAtStart.map((hidden) => 1 - hidden);
    this.engine = model.offline === "exact" ? new Engine(model) : null;
    this.reason = this.engine === null ? model.offlineReason || "This saved page does not pick." : null;
  }

  async pick(ray: Ray, row?: number): Promise<Answer> {
    if (this.engine === null) throw new Error(this.reason ?? "");
    return { ...this.engine.cast(ray, this.pickable), row: row ?? null };
  }

  async row(row: number): Promise<Answer> {
    const { rays } = this.model;
    if (rays === null) throw new Error("This page has no rays.");
    const k = rays.row.indexOf(row);
    if (k < 0) throw new Error(`Ray ${row} is not among the ${rays.row.length} rays saved in this page.`);
    return this.pick(sampledRay(rays, k), row);
  }

  setPickable(pickable: Uint8Array): void {
    this.pickable = pickable.slice();
  }

  /** Returns this page with another state. */
  async save(state: ViewState): Promise<{ name: string; content: Uint8Array }> {
    return { name: `${this.model.name || "scene"}.html`, content: new TextEncoder().encode(withState(this.html, state)) };
  }

  async upload(): Promise<string> {
    throw new Error("A saved page opens no other file. Start raybox view to open one.");
  }
}

/** Returns the ray of a row of the sample. */
export function sampledRay(rays: RaySample, k: number): Ray {
  const [ox, oy, oz] = rays.origin.subarray(3 * k, 3 * k + 3);
  const [dx, dy, dz] = rays.direction.subarray(3 * k, 3 * k + 3);
  return { origin: [ox, oy, oz], direction: [dx, dy, dz], tMin: rays.tMin[k], tMax: rays.tMax[k] };
}

/** Returns the text of a saved page with another state in its element. */
export function withState(html: string, state: ViewState): string {
  const opening = new RegExp(`<script[^>]*id="${STATE_ELEMENT}"[^>]*>`).exec(html);
  if (opening === null) throw new Error("This page has no place for a state.");
  const start = opening.index + opening[0].length;
  const json = JSON.stringify(state).replaceAll("<", "\\u003c");
  return html.slice(0, start) + json + html.slice(html.indexOf("</script>", start));
}
