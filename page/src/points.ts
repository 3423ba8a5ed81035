/** The points of scans: their colours with the legend, and which of them and of their rays the ranges leave. */

import { short } from "./format.ts";
import { extent } from "./labels.ts";
import { DIVERGING, MISS, RAMP, ramp, rgb } from "./look.ts";
import { distanceScale, FAINT, ownColours, rounded, sorted } from "./rays.ts";
import type { LegendEntry, PointCloud, PointsView, SceneModel, View } from "./types.ts";

/** The automatic scale of residuals reaches this many times their median size: far ones do not take its colours. */
const MEDIANS = 3;

/** The name of the range of a field, which no label of objects has. */
export const rangeOf = (field: string): string => `points: ${field}`;

/** The fields of points that a range can filter. */
export function pointRanges({ points }: SceneModel) {
  return (points?.fields ?? []).flatMap(({ name, values }) => {
    const found = extent(values);
    return found ? [{ name: rangeOf(name), title: name, values, extent: found }] : [];
  });
}

/** Whether rays end at the points. */
export const isScan = ({ points }: SceneModel): boolean => points?.ray.some((row) => row >= 0) ?? false;

/** Ways to colour the points, each with the text that names it. */
export function pointColours(model: SceneModel): { value: string; text: string }[] {
  const residual = model.table && isScan(model) ? [{ value: "residual", text: "cast − measured" }] : [];
  const fields = (model.points?.fields ?? []).map(({ name }) => ({ value: name, text: `by ${name}` }));
  return [{ value: "distance", text: "by distance" }, ...residual, ...fields];
}

/** The cast distance minus the measured one, of each point: +inf where its ray hits nothing, NaN without a ray. */
export function residuals({ points, table }: SceneModel): Float64Array {
  return points!.distance.map((measured, at) => (table?.distance[points!.ray[at]] ?? NaN) - measured);
}

/** The measured distance of each ray of the table; NaN where it has no point. */
export function measuredOf({ ray, distance }: PointCloud, rows: number): Float64Array {
  const measured = new Float64Array(rows).fill(NaN);
  ray.forEach((row, at) => row >= 0 && (measured[row] = distance[at]));
  return measured;
}

/** One byte a point, and one a ray of the table: 1 inside all ranges of fields. A point without a value is outside. */
export function insideRanges(ranges: View["ranges"], model: SceneModel): { points: Uint8Array; rays: Uint8Array } | null {
  const active = pointRanges(model).filter(({ name }) => ranges[name]);
  if (!active.length) return null;
  const inside = (at: number) => active.every(({ name, values }) => values[at] >= ranges[name][0] && values[at] <= ranges[name][1]);
  const points = Uint8Array.from(model.points!.distance, (_, at) => Number(inside(at)));
  const rays = new Uint8Array(model.table?.total ?? 0).fill(1);
  model.points!.ray.forEach((row, at) => row >= 0 && (rays[row] = points[at]));
  return { points, rays };
}

/** Four bytes a point, opacity 0 where it is left out, with the legend; a point without a value is faint. */
export function drawPoints(model: SceneModel, view: PointsView, inside: Uint8Array | null) {
  const { distance, colors } = model.points!;
  const { colourOf, scale, missing } = view.colour === "residual" ? byResidual(model, view.limit) : byValue(model, view.colour);
  const own = ownColours(colors ?? []);
  const rgba = new Uint8Array(4 * distance.length);
  const faint = rgb(MISS);
  let without = 0;
  for (let at = 0; at < distance.length; at++) {
    if (inside && !inside[at]) continue;
    const colour = own(at) ?? colourOf(at);
    rgba.set(colour ?? faint, 4 * at);
    rgba[4 * at + 3] = colour ? 255 : FAINT;
    without += Number(!colour);
  }
  const legend: LegendEntry[] = [scale, { text: missing, colours: [MISS], count: without }];
  return { rgba, legend: legend.filter(({ count }) => count !== 0) };
}

function byValue({ points }: SceneModel, field: string) {
  const values = points!.fields.find(({ name }) => name === field)?.values;
  const { low, high, text } = distanceScale(values ?? points!.distance);
  const fraction = (value: number) => (value - low) / (high - low);
  return {
    colourOf: (at: number) => finite((values ?? points!.distance)[at], (value) => ramp(fraction(value))),
    scale: { text: `points, ${values ? field : "distance"}: ${text}`, colours: [...RAMP] },
    missing: `points without ${field}`,
  };
}

function byResidual(model: SceneModel, chosen: number | null) {
  const found = residuals(model);
  const limit = chosen ?? residualLimit(found);
  const all = extent(found)?.map(rounded).join(" to ");
  return {
    colourOf: (at: number) => finite(found[at], (value) => ramp((value / limit + 1) / 2, DIVERGING)),
    scale: {
      text: `points, cast − measured${model.unit && `, ${model.unit}`}: ${short(-limit)} to ${short(limit)}${all ? `; all: ${all}` : ""}`,
      colours: [...DIVERGING],
    },
    missing: "points without a hit",
  };
}

const finite = <T>(value: number, act: (value: number) => T): T | null => (Number.isFinite(value) ? act(value) : null);

/** The largest size of a residual with a colour of its own, unless the user chooses. */
export function residualLimit(found: Float64Array): number {
  const sizes = sorted(found.map(Math.abs));
  return Number((MEDIANS * (sizes[sizes.length >> 1] ?? 0)).toPrecision(2)) || sizes.at(-1) || 1;
}
