/** Small scenes for tests of the panels' logic. */

import type { SceneModel } from "../src/types.ts";

/** Five unit boxes in a row along x, with a class, a name and a height; the last has no name and no height. */
export function sceneOfBoxes(): SceneModel {
  const lower = Float64Array.from([0, 1, 2, 3, 4].flatMap((x) => [2 * x, 0, x]));
  const upper = lower.map((value) => value + 1);
  return {
    name: "row.csv",
    title: "Row",
    credit: "",
    unit: "",
    up: "z",
    shift: [0, 0, 0],
    bounds: [
      [0, 0, 0],
      [9, 1, 5],
    ],
    objects: 5,
    geometries: [{ type: "boxes", firstObject: 0, objects: 5, primitives: 5, lower, upper }],
    labels: [
      {
        name: "type",
        kind: "class",
        words: ["wall", "door"],
        codes: Uint32Array.of(0, 0, 1, 2, 0),
      },
      { name: "name", kind: "text", values: ["north", "door wall", "door", "back door", null] },
      { name: "height", kind: "number", values: Float64Array.of(1, 2, 3, 4, NaN) },
    ],
    ids: ["id-0", "id-1", "id-2", "id-3", "id-4"],
    names: "name",
    classes: "type",
    levels: null,
    properties: null,
    hiddenAtStart: null,
    offline: "exact",
    offlineReason: "",
    rays: null,
    table: null,
    points: null,
  };
}

/** The boxes with four rays along x: two hit, one misses, one flies past. */
export function sceneWithRays(): SceneModel {
  const origin = Float64Array.from([-1, 0.5, 0.5, 0.5, 0.5, 9, -1, 0.5, 2.5, 0, 0, 99]);
  const direction = Float64Array.from([2, 0, 0, 0, 0, -1, 1, 0, 0, 0, 1, 0]);
  return {
    ...sceneOfBoxes(),
    rays: {
      total: 4,
      row: Uint32Array.of(0, 1, 2, 3),
      origin,
      direction,
      tMin: new Float64Array(4),
      tMax: Float64Array.of(Infinity, Infinity, Infinity, 7),
    },
    table: {
      total: 4,
      t: Float64Array.of(0.5, 8, Infinity, Infinity),
      object: Int32Array.of(0, 0, -1, -1),
      distance: Float64Array.of(1, 8, Infinity, Infinity),
    },
  };
}
