/** The points of scans: their colours with the legend, and which of them and of their rays the ranges leave. */

import { short } from "./format.ts";
import { extent } from "./labels.ts";
import { DIVERGING, MISS, RAMP, ramp, rgb } from "./look.ts";
import { distanceScale, FAINT, ownColours, rounded } from "./rays.ts";
import type { LegendEntry, PointCloud, PointsView, SceneModel, View } from "./types.ts";

/** The automatic scale of differences reaches this many times their median size: far ones do not take its colours. */
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

/** Ways to colour the points, each with the text that names it. */
export function pointColours({ points, table }: SceneModel): { value: string; text: string }[] {
  const ways = [{ value: "distance", text: "by distance" }];
  if (table && points?.ray.some((row) => row >= 0)) ways.push({ value: "residual", text: "cast − measured" });
  return [...ways, ...(points?.fields ?? []).map(({ name }) => ({ value: name, text: `by ${name}` }))];
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

/** One byte a point, 1 inside all ranges of fields; null where there are none. A point without a value is outside. */
export function keptPoints(model: SceneModel, ranges: View["ranges"]): Uint8Array | null {
  const active = pointRanges(model).filter(({ name }) => ranges[name]);
  if (!active.length) return null;
  const inside = (at: number) => active.every(({ name, values }) => values[at] >= ranges[name][0] && values[at] <= ranges[name][1]);
  return Uint8Array.from(model.points!.distance, (_, at) => Number(inside(at)));
}

/** One byte a ray of the table, 0 where its point is left out; null where there are no ranges of fields. */
export function keptRays({ points, table }: SceneModel, kept: Uint8Array | null): Uint8Array | null {
  if (!kept || !table) return null;
  const rays = new Uint8Array(table.total).fill(1);
  points!.ray.forEach((row, at) => row >= 0 && (rays[row] = kept[at]));
  return rays;
}

interface Palette {
  /** The colour of a point; null where it has no value. */
  colourOf: (at: number) => [number, number, number] | null;
  scale: LegendEntry;
  missing: string;
}

/** Four bytes a point, opacity 0 where it is left out, with the legend. */
export function drawPoints(model: SceneModel, view: PointsView, kept: Uint8Array | null) {
  const { distance, colors } = model.points!;
  const { colourOf, scale, missing } = paletteOf(model, view);
  const own = ownColours(colors ?? []);
  const rgba = new Uint8Array(4 * distance.length);
  let without = 0;
  for (let at = 0; at < distance.length; at++) {
    if (kept && !kept[at]) continue;
    const colour = own(at) ?? colourOf(at);
    rgba.set(colour ?? rgb(MISS), 4 * at);
    rgba[4 * at + 3] = colour ? 255 : FAINT;
    if (!colour) without++;
  }
  const none = { text: `points, ${missing}`, colours: [MISS], count: without };
  return { rgba, legend: without ? [scale, none] : [scale] };
}

function paletteOf(model: SceneModel, { colour, limit }: PointsView): Palette {
  if (colour === "residual") return byResidual(residuals(model), limit, model.unit);
  const values = model.points!.fields.find(({ name }) => name === colour)?.values ?? model.points!.distance;
  const name = values === model.points!.distance ? "distance" : colour;
  const { low, high, text } = distanceScale(values);
  return {
    colourOf: (at) => (Number.isFinite(values[at]) ? ramp((values[at] - low) / (high - low)) : null),
    scale: { text: `points, ${name}: ${text}`, colours: [...RAMP] },
    missing: `no ${name}`,
  };
}

/** The largest size of a difference with a colour of its own: what the user chose, or a multiple of the median. */
export function residualLimit(found: Float64Array, limit: number | null): number {
  if (limit !== null) return limit;
  const sizes = found.filter(Number.isFinite).map(Math.abs).sort();
  return Number((MEDIANS * (sizes[sizes.length >> 1] ?? 0)).toPrecision(2)) || sizes.at(-1) || 1;
}

function byResidual(found: Float64Array, chosen: number | null, unit: string): Palette {
  const limit = residualLimit(found, chosen);
  const [least, most] = extent(found) ?? [0, 0];
  const ends = [least < -limit && `down to ${rounded(least)}`, most > limit && `up to ${rounded(most)}`].filter(Boolean);
  const beyond = ends.length ? `, and ${ends.join(" and ")}` : "";
  const text = `points, cast − measured${unit && `, ${unit}`}: ${short(-limit)} to ${short(limit)}${beyond}`;
  return {
    colourOf: (at) => (Number.isFinite(found[at]) ? ramp((found[at] / limit + 1) / 2, DIVERGING) : null),
    scale: { text, colours: [...DIVERGING] },
    missing: "the ray hits nothing",
  };
}
