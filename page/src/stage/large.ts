/** The boxes that are large in the picture, for pictures that have little time. */

import type { LayerView } from "./layer.ts";

/** Rows of boxes, and the pixels from which on a box is among them. */
export interface LargeBoxes {
  rows: number[];
  least: number;
}

/** Parts of a doubling of size that are counted. */
const STEPS = 8;
const DOUBLINGS = 24;

/**
 * Returns the boxes of at least `view.dotsBelow` pixels in the picture; of more than `most`, the largest.
 *
 * `boxes` has eight numbers a row: lower corner, object, upper corner, one that is not read; `ranges` are
 * the first rows and the ends of those to look at.
 */
export function largeBoxes(
  boxes: Float32Array,
  ranges: readonly (readonly [number, number])[],
  view: LayerView,
  most: number,
): LargeBoxes {
  const rows: number[] = [];
  const steps: number[] = [];
  const counts = new Uint32Array(STEPS * DOUBLINGS);
  for (const [first, end] of ranges) {
    for (let row = first; row < end; row++) {
      if (view.look[4 * boxes[8 * row + 3] + 3] === 0) continue;
      const pixels = pixelsOf(boxes, row, view);
      if (pixels < view.dotsBelow) continue;
      const step = Math.min(counts.length - 1, Math.floor(STEPS * Math.log2(pixels / view.dotsBelow)));
      rows.push(row);
      steps.push(step);
      counts[step]++;
    }
  }
  const from = firstStep(counts, most);
  const least = view.dotsBelow * 2 ** (from / STEPS);
  return { rows: from === 0 ? rows : rows.filter((_, i) => steps[i] >= from), least };
}

/** Returns the step from which on at most so many boxes are in it and in those above. */
function firstStep(counts: Uint32Array, most: number): number {
  let sum = 0;
  for (let step = counts.length - 1; step >= 0; step--) {
    sum += counts[step];
    if (sum > most) return step + 1;
  }
  return 0;
}

/** Returns the pixels of a box's longest side; 0 outside of the picture. */
function pixelsOf(boxes: Float32Array, row: number, view: LayerView): number {
  const at = 8 * row;
  const size = Math.max(boxes[at + 4] - boxes[at], boxes[at + 5] - boxes[at + 1], boxes[at + 6] - boxes[at + 2]);
  const x = (boxes[at] + boxes[at + 4]) / 2;
  const y = (boxes[at + 1] + boxes[at + 5]) / 2;
  const z = (boxes[at + 2] + boxes[at + 6]) / 2;
  for (const { normal, offset } of view.sides) {
    const past = normal[0] * x + normal[1] * y + normal[2] * z - offset;
    // The sides' normals are up to twice as long as 1, half a box's diagonal as its longest side.
    if (past > 2 * size) return 0;
  }
  if (view.orthographic) return size * view.pixels;
  const { eye, forward } = view;
  const depth = forward[0] * (x - eye[0]) + forward[1] * (y - eye[1]) + forward[2] * (z - eye[2]);
  return depth < -size ? 0 : (size * view.pixels) / Math.max(depth, 1e-6);
}
