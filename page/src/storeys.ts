/** The storeys of a building, from the bounds of their objects. */

import { codedLabel, NONE } from "./labels.ts";
import { grouped, rowsOf } from "./stage/group.ts";
import { objectBounds } from "./stage/hull.ts";
import { AXES, isEmpty } from "./stage/vec.ts";
import type { SceneModel } from "./types.ts";

/** A storey of a building, and the height at which its floor plan is cut. */
export interface Storey {
  name: string;
  at: number;
}

/**
 * The height of the cut between the floor of a storey and the next one: through doors and windows, under ceilings.
 *
 * A cut at the next floor itself would leave the ceilings, which hide the rooms.
 */
const PLAN_HEIGHT = 0.4;
/** Objects of a storey whose bounds are read, an even sample of more. */
const SAMPLE = 200;

/** Returns the storeys of a building from the lowest up; none where fewer than two are known. */
export function storeysOf(model: SceneModel): Storey[] {
  // Layers of a drawing are no storeys.
  const label = model.levels === "layer" ? null : codedLabel(model, model.levels);
  if (!label) return [];
  const objects = grouped(label.codes, label.words.length);
  const floors = label.words.flatMap((name, code) => {
    const extent = name === NONE ? null : verticalExtent(model, rowsOf(objects, code));
    return extent ? [{ name, ...extent }] : [];
  });
  if (floors.length < 2) return [];
  floors.sort((a, b) => a.floor - b.floor);
  return floors.map(({ name, floor, top }, k) => ({ name, at: floor + PLAN_HEIGHT * ((floors[k + 1]?.floor ?? top) - floor) }));
}

/** Returns the height on which most objects of a storey stand, and that of the highest top; null if none has bounds. */
function verticalExtent(model: SceneModel, objects: Uint32Array): { floor: number; top: number } | null {
  const up = AXES.indexOf(model.up);
  const step = Math.ceil(objects.length / SAMPLE);
  const sample = [...objects].filter((_, k) => k % step === 0).map((object) => objectBounds(model, [object]));
  const bounds = sample.filter((one) => !isEmpty(one));
  const lows = bounds.map(({ lower }) => lower[up]).sort((a, b) => a - b);
  return lows.length ? { floor: lows[lows.length >> 1], top: Math.max(...bounds.map(({ upper }) => upper[up])) } : null;
}
