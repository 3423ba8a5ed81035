/** The look of all objects as the programs read it: a texel each. */

import { FIRST, PLAIN, rgb } from "../look.ts";
import type { Look } from "../types.ts";
import { table } from "./program.ts";

/** Which passes the objects need. */
export interface Composed {
  opaque: boolean;
  translucent: boolean;
}

export const lookTable = (objects: number) => table(objects, (length) => new Uint8Array(length));

/**
 * Writes the look of objects: the first of `highlight` is orange; with `faded`, all others have at most this opacity.
 * What is hidden stays so.
 */
export function composeLook(
  data: Uint8Array,
  look: Look | null,
  highlight: readonly number[],
  faded: number | null,
  objects: number,
): Composed {
  if (look) data.set(look.rgba.subarray(0, 4 * objects));
  else for (let i = 0; i < data.length; i += 4) data.set([...rgb(PLAIN), 255], i);
  const chosen = new Map(highlight.map((object) => [object, data[4 * object + 3]]));
  if (faded !== null) for (let i = 3; i < 4 * objects; i += 4) data[i] = Math.min(data[i], faded);
  for (const [object, opacity] of chosen) data[4 * object + 3] = opacity;
  const [first] = highlight;
  if (first !== undefined && chosen.get(first)! > 0) data.set([...rgb(FIRST), 255], 4 * first);
  const found = { opaque: false, translucent: false };
  for (let i = 3; i < 4 * objects; i += 4) {
    if (data[i] === 255) found.opaque = true;
    else if (data[i] > 0) found.translucent = true;
  }
  return found;
}
