/** Colours of objects from those that the file states of their primitives. */

import type { Geometry, PaletteRows, SceneModel } from "./types.ts";

/** Four bytes an object: the mean of its primitives' colours; opacity 0 where the file states none. */
export function fileColours({ geometries, objects, palette }: SceneModel): Uint8Array {
  const colours = new Uint8Array(4 * objects);
  if (!palette) return colours;
  for (const one of geometries) {
    const own = colours.subarray(4 * one.firstObject, 4 * (one.firstObject + one.objects));
    if (one.paletteRows) {
      writeMeans(one.paletteRows, one.type === "mesh" ? (row) => one.triangleObjects[row] : (row) => row, palette, own);
    } else if (one.type === "instances" && one.base.paletteRows) {
      writeMeans(one.base.paletteRows, () => 0, palette, own);
      for (let copy = 1; copy < one.objects; copy++) own.copyWithin(4 * copy, 0, 4);
    }
  }
  return colours;
}

/** Whether each object has one colour of the file; of others, the programs have a colour for each primitive. */
export function isByObject({ type, paletteRows }: Geometry): boolean {
  return type !== "mesh" && Boolean(paletteRows);
}

function writeMeans(
  rows: PaletteRows,
  objectOf: (primitive: number) => number,
  palette: Uint8Array,
  colours: Uint8Array,
): void {
  const sums = new Float64Array(colours.length);
  const counts = new Uint32Array(colours.length / 4);
  rows.forEach((row, primitive) => {
    if (row === 0) return;
    const object = objectOf(primitive);
    counts[object]++;
    for (let k = 0; k < 4; k++) sums[4 * object + k] += palette[4 * row + k];
  });
  sums.forEach((sum, i) => (colours[i] = Math.round(sum / (counts[i >> 2] || 1))));
}
