/** The drawn rays: where each ends, its colour, and the legend of these colours. */

import type { Colouring } from "./colouring.ts";
import { count, short } from "./format.ts";
import { extent, Naming } from "./labels.ts";
import { CATEGORIES, HIT, MISS, OTHER, RAMP, ramp, rgb } from "./look.ts";
import type { Colors } from "./schema.ts";
import type { LegendEntry, RaySample, RaysView, SceneModel } from "./types.ts";

export interface DrawnRays {
  /** Four bytes a drawn ray; opacity 0 is not drawn. */
  rgba: Uint8Array;
  legend: LegendEntry[];
}

/** The t at which each drawn ray hits; +inf for a miss. */
export function hitTimes({ table }: SceneModel, { row }: RaySample): Float64Array {
  return Float64Array.from(row, (one) => table?.t[one] ?? Infinity);
}

/** Colour and visibility of the drawn rays, next to objects in their colours. */
export function drawRays(model: SceneModel, sample: RaySample, view: RaysView, objects: Colouring, inside?: Uint8Array): DrawnRays {
  const rows = rowsOf(model, sample, inside);
  const { colourOf, legend } = palettes[view.colour](model, rows.hits, objects);
  const own = ownColours(sample.colors ?? []);
  const rgba = new Uint8Array(4 * sample.row.length);
  let drawn = 0;
  for (let at = 0; at < sample.row.length; at++) {
    const hit = isHit(model, sample.row[at]);
    if (!(hit ? view.hits : view.misses) || inside?.[sample.row[at]] === 0) continue;
    rgba.set(own(sample.row[at]) ?? (hit ? colourOf(sample.row[at]) : rgb(MISS)), 4 * at);
    rgba[4 * at + 3] = hit ? 255 : FAINT;
    drawn++;
  }
  const miss = { text: "miss", colours: [MISS], count: rows.misses };
  const all = (view.hits ? rows.hits.length : 0) + (view.misses ? rows.misses : 0);
  const part: LegendEntry = { text: `${count(drawn)} of ${count(all)} rays drawn, an even sample`, colours: [] };
  const entries: LegendEntry[] = [...(view.hits ? legend : []), ...(view.misses ? [miss] : []), ...(drawn < all ? [part] : [])];
  return { rgba, legend: entries.filter((entry) => entry.count !== 0) };
}

/** The rows that hit, and the number of the others: of all rays where there is a table, else of the sample. */
function rowsOf(model: SceneModel, sample: RaySample, inside?: Uint8Array): { hits: Uint32Array; misses: number } {
  const total = model.table?.total ?? sample.row.length;
  const hits = new Uint32Array(total);
  let [found, misses] = [0, 0];
  for (let at = 0; at < total; at++) {
    const row = model.table ? at : sample.row[at];
    if (inside?.[row] === 0) continue;
    if (isHit(model, row)) hits[found++] = row;
    else misses++;
  }
  return { hits: hits.subarray(0, found), misses };
}

/** Returns the function from a row to the colour that it has of its own; null for the page's. */
export function ownColours(runs: Colors): (row: number) => [number, number, number] | null {
  let end = 0;
  const ends = runs.map(([color, rows]) => ({ color: color === null ? null : rgb(color), end: (end += rows) }));
  return (row) => ends.find((run) => row < run.end)?.color ?? null;
}

export function isHit(model: SceneModel, row: number): boolean {
  return (model.table?.object[row] ?? -1) >= 0;
}

type Palette = { colourOf: (row: number) => ArrayLike<number>; legend: LegendEntry[] };
const palettes: Record<RaysView["colour"], (model: SceneModel, hits: Uint32Array, objects: Colouring) => Palette> = {
  status: byStatus,
  distance: byDistance,
  object: byObject,
};

function byStatus(_: SceneModel, hits: Uint32Array): Palette {
  const colour = rgb(HIT);
  return { colourOf: () => colour, legend: [{ text: "hit", colours: [HIT], count: hits.length }] };
}

function byDistance(model: SceneModel, hits: Uint32Array): Palette {
  const distance = (row: number) => model.table!.distance[row];
  const { low, high, text } = distanceScale(Float64Array.from(hits, distance));
  const legend = [{ text: `rays, distance: ${text}`, colours: [...RAMP] }];
  return { colourOf: (row) => ramp((distance(row) - low) / (high - low)), legend };
}

/** Hits much farther than nearly all others have the last colour, so that the others differ. */
const NEARLY_ALL = 0.98;
const MUCH_FARTHER = 2;
/** Of more distances an even part is sorted, as sorting millions takes a second. */
const MOST_SORTED = 50_000;
/** The opacity of misses: hits show among them. */
export const FAINT = 56;

export function distanceScale(distances: Float64Array): { low: number; high: number; text: string } {
  const [low, farthest] = extent(distances) ?? [0, 1];
  const some = sorted(distances);
  const high = some[Math.floor(NEARLY_ALL * (some.length - 1))] ?? farthest;
  if (high <= low || farthest - low <= MUCH_FARTHER * (high - low)) {
    return { low, high: farthest, text: `${rounded(low)} to ${rounded(farthest)}` };
  }
  return { low, high, text: `${rounded(low)} to ${rounded(high)}, and up to ${rounded(farthest)}` };
}

/** Finite values in ascending order; of many an even part. */
export function sorted(values: Float64Array): Float64Array {
  const step = Math.ceil(values.length / MOST_SORTED);
  return values.filter((value, at) => at % step === 0 && Number.isFinite(value)).sort();
}

/** Four digits: of a scale, one reads no more. */
export function rounded(value: number): string {
  return short(Number(value.toPrecision(4)));
}

/** Rays have the colours of the objects that they hit, whose legend is there; of objects without one, see `byMostHit`. */
function byObject(model: SceneModel, hits: Uint32Array, { rgb: colours, legend }: Colouring): Palette {
  if (legend(new Uint8Array(model.objects).fill(1)).length === 0) return byMostHit(model, hits);
  const colourOf = (row: number) => {
    const at = 3 * model.table!.object[row];
    return colours.subarray(at, at + 3);
  };
  return { colourOf, legend: [] };
}

/** The objects hit most have colours, the others are grey. */
function byMostHit(model: SceneModel, hits: Uint32Array): Palette {
  const counts = new Uint32Array(model.objects);
  for (const row of hits) counts[model.table!.object[row]]++;
  const found = [...counts.keys()].filter((object) => counts[object]).sort((a, b) => counts[b] - counts[a] || a - b);
  const order = found.map((object): [number, number] => [object, counts[object]]);
  const top = new Map(order.slice(0, CATEGORIES.length).map(([object], at) => [object, rgb(CATEGORIES[at])]));
  const colourOf = (row: number) => top.get(model.table!.object[row]) ?? rgb(OTHER);
  return { colourOf, legend: objectLegend(new Naming(model), order) };
}

function objectLegend(naming: Naming, order: [number, number][]): LegendEntry[] {
  const top = order.slice(0, CATEGORIES.length);
  const others = order.slice(CATEGORIES.length);
  const entries = top.map(([object, hits], at) => ({
    text: naming.full(object),
    colours: [CATEGORIES[at]],
    count: hits,
  }));
  const rest = others.reduce((sum, [, hits]) => sum + hits, 0);
  return [...entries, { text: `${count(others.length)} other objects`, colours: [OTHER], count: rest }];
}
