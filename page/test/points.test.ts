import assert from "node:assert/strict";
import { test } from "node:test";
import { restoredView, startView } from "../src/controls.ts";
import { DIVERGING, MISS, RAMP, ramp, rgb } from "../src/look.ts";
import { drawPoints, insideRanges, measuredOf, pointColours, pointRanges, rangeOf, residualLimit, residuals } from "../src/points.ts";
import { remarksOf } from "../src/panel/legend.ts";
import { FAINT } from "../src/rays.ts";
import { Store } from "../src/store.ts";
import type { PointsView, SceneModel } from "../src/types.ts";
import { sceneWithRays } from "./scenes.ts";

const VIEW: PointsView = { colour: "distance", size: 2, limit: null };

/** Rays that end at four points: those of rows 1, 0 and 2, and a point without a ray. */
function scan(): SceneModel {
  const field = (name: string, ...values: number[]) => ({ name, values: Float64Array.from(values) });
  const points = {
    xyz: new Float64Array(12),
    distance: Float64Array.of(8.5, 0.75, 3, 4),
    ray: Int32Array.of(1, 0, 2, -1),
    fields: [field("intensity", 0, 50, NaN, 100), field("time", 1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3)],
  };
  return { ...sceneWithRays(), points };
}

const colourOf = (rgba: Uint8Array, at: number) => [...rgba.subarray(4 * at, 4 * at + 3)];
const opacities = (rgba: Uint8Array) => [...rgba.filter((_, at) => at % 4 === 3)];

test("a residual is the cast distance minus the measured one", () => {
  assert.deepEqual([...residuals(scan())], [-0.5, 0.25, Infinity, NaN]);
  assert.deepEqual([...measuredOf(scan().points!, 4)], [0.75, 8.5, 3, NaN]);
});

test("residuals have a symmetric scale; points without one are faint and counted", () => {
  const { rgba, legend } = drawPoints(scan(), { ...VIEW, colour: "residual", limit: 0.5 }, null);
  assert.deepEqual(colourOf(rgba, 0), rgb(DIVERGING[0]));
  assert.deepEqual(colourOf(rgba, 1), ramp(0.75, DIVERGING));
  assert.deepEqual(ramp(0.5, DIVERGING), rgb(DIVERGING[2]));
  assert.deepEqual(opacities(rgba), [255, 255, FAINT, FAINT]);
  assert.deepEqual(legend.map(({ text, count }) => [text, count]), [
    ["points, cast − measured: -0.5 to 0.5; all: -0.5 to 0.25", undefined],
    ["points without a hit", 2],
  ]);
  assert.deepEqual(legend[1].colours, [MISS]);
  const inFeet = drawPoints({ ...scan(), unit: "ft" }, { ...VIEW, colour: "residual", limit: 0.1 }, null).legend;
  assert.equal(inFeet[0].text, "points, cast − measured, ft: -0.1 to 0.1; all: -0.5 to 0.25");
});

test("the scale of residuals is a multiple of their median size", () => {
  assert.equal(residualLimit(Float64Array.of(-1, 2, 3, -4, 500, Infinity, NaN)), 9);
  assert.equal(residualLimit(Float64Array.of(0, 0, 7)), 7);
  assert.equal(residualLimit(Float64Array.of(NaN)), 1);
});

test("points have the colours of a field, and ranges of fields leave out points and their rays", () => {
  const model = scan();
  assert.deepEqual(pointColours(model).map(({ value }) => value), ["distance", "residual", "intensity", "time"]);
  assert.deepEqual(pointColours({ ...model, table: null }).map(({ value }) => value), ["distance", "intensity", "time"]);
  const { rgba, legend } = drawPoints(model, { ...VIEW, colour: "intensity" }, null);
  assert.deepEqual([colourOf(rgba, 0), colourOf(rgba, 3)], [rgb(RAMP[0]), rgb(RAMP.at(-1)!)]);
  assert.deepEqual(legend.map(({ text }) => text), ["points, intensity: 0 to 100", "points without intensity"]);
  assert.deepEqual(pointRanges(model).map(({ extent }) => extent), [[0, 100], [1e9, 1e9 + 3]]);
  const inside = insideRanges({ [rangeOf("time")]: [1e9 + 1, 1e9 + 3], [rangeOf("intensity")]: [0, 60] }, model)!;
  assert.deepEqual([...inside.points], [0, 1, 0, 0], "a point without a value is outside");
  assert.deepEqual([...inside.rays], [1, 0, 0, 1], "a ray without a point stays");
  assert.deepEqual(opacities(drawPoints(model, VIEW, inside.points).rgba), [0, 255, 0, 0]);
  assert.equal(insideRanges({ height: [0, 1] }, model), null, "ranges of labels are of objects");
});

test("one far point does not take the colours of all others, and points may have a colour of their own", () => {
  const distance = Float64Array.from({ length: 200 }, (_, at) => (at === 7 ? 1e17 : 1 + at / 100));
  const points = { ...scan().points!, distance, fields: [], ray: new Int32Array(200).fill(-1) };
  const { rgba, legend } = drawPoints({ ...scan(), points }, VIEW, null);
  assert.deepEqual([colourOf(rgba, 0), colourOf(rgba, 7)], [rgb(RAMP[0]), rgb(RAMP.at(-1)!)]);
  assert.match(legend[0].text, /1 to 2\.9\d*, and up to 1\.000e\+17$/);
  const own = drawPoints({ ...scan(), points: { ...points, colors: [["#ff0000", 1], [null, 199]] } }, VIEW, null).rgba;
  assert.deepEqual([colourOf(own, 0), colourOf(own, 1)], [[255, 0, 0], colourOf(rgba, 1)]);
});

test("a link restores how points are shown, as far as the scene has it", () => {
  const model = scan();
  const start = startView(model, false);
  const restored = (points: unknown) => restoredView(model, { ...start, points }, start).points;
  const given = { colour: "intensity", size: 5.5, limit: 0.2 };
  assert.deepEqual(restored(given), given);
  assert.equal(restored({ ...given, colour: "reflectance" }), start.points);
  assert.equal(restored({ ...given, size: 400 }), start.points);
  assert.deepEqual(restored({ ...given, limit: -1 }), { ...given, limit: null });
  const ranges = { [rangeOf("time")]: [1, 2], [rangeOf("other")]: [1, 2], height: [1, 3] };
  assert.deepEqual(Object.keys(restoredView(model, { ...start, ranges }, start).ranges), [rangeOf("time"), "height"]);
});

test("what is drawn in part says so", () => {
  const grid = { type: "grid", firstObject: 5, objects: 1, primitives: 9e6, edges: [], occupied: null, cells: null, visible: null };
  const scene = { ...sceneWithRays(), objects: 300 };
  const model = { ...scene, geometries: [...scene.geometries, grid] } as unknown as SceneModel;
  const store = new Store(model, startView(model, false));
  const said = () => remarksOf(store).map(({ text }) => text);
  assert.deepEqual(said(), ["a grid of 9,000,000 cells is drawn as its outline"]);
  store.set({ selection: Array.from({ length: 250 }, (_, object) => object), hidden: [0, 19] });
  assert.deepEqual(said()[0], "200 of 230 selected objects outlined");
  const shown = { ...model, geometries: scene.geometries };
  assert.deepEqual(remarksOf(new Store(shown, startView(shown, false))), []);
});
