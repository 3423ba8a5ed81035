/** Checks of values from a link or a saved page: null where a value does not fit the scene. */

import { labelOf } from "./labels.ts";
import { MOST_POINTS } from "./measure.ts";
import { unpackSet } from "./object_set.ts";
import { pointColours, pointRanges } from "./points.ts";
import type { CameraState, ColourBy, CutPlane, PointsView, RaysView, SceneModel, Vec3, View } from "./types.ts";

/** The choices of `View.pictureScale`. */
export const PICTURE_SCALES = [1, 2, 4];

/** The least and the greatest size of points, in pixels of the page. */
export const SIZES: [number, number] = [1, 12];

type Raw = Record<string, unknown>;
export type Check<T> = (value: unknown) => T | null;

/** Whether a state says that it belongs to another scene: its numbers of objects mean nothing here. */
export function isOfAnother(model: SceneModel, given: unknown): boolean {
  return isRaw(given) && typeof given.scene === "string" && given.scene !== sceneKey(model);
}

/** Name and size of a scene. */
export function sceneKey({ name, objects }: SceneModel): string {
  return `${name}, ${objects}`;
}

export const isRaw = (value: unknown): value is Raw => typeof value === "object" && value !== null && !Array.isArray(value);
export const flag: Check<boolean> = (value) => (typeof value === "boolean" ? value : null);
const text: Check<string> = (value) => (typeof value === "string" ? value : null);
const number: Check<number> = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

export function listOf<T>(check: Check<T>): Check<T[]> {
  return (value) => {
    if (!Array.isArray(value)) return null;
    const checked = value.map(check);
    return checked.every((one): one is Awaited<T> & T => one !== null) ? (checked as T[]) : null;
  };
}

const point: Check<Vec3> = (value) => {
  const numbers = listOf(number)(value);
  return numbers?.length === 3 ? (numbers as Vec3) : null;
};

export const measured: Check<Vec3[]> = (value) => listOf(point)(value)?.slice(0, MOST_POINTS) ?? null;

function oneOf<T extends string>(...words: T[]): Check<T> {
  return (value) => words.find((word) => word === value) ?? null;
}

export function objectOf(model: SceneModel): Check<number> {
  return (value) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) < model.objects ? Number(value) : null;
}

function rangesOf(model: SceneModel): Check<number[]> {
  return (value) => {
    const ranges = listOf(objectOf(model))(value);
    return ranges && ranges.length % 2 === 0 ? ranges : null;
  };
}

export function setOf(model: SceneModel): Check<number[]> {
  return (value) => {
    if (!isRaw(value)) return rangesOf(model)(value);
    const [except, words] = [rangesOf(model)(value.except), listOf(text)(value.words)];
    return except && words && unpackSet(model, { label: String(value.label), words, except });
  };
}

/** Returns the check of an object that needs all of these fields, and keeps no others. */
function fields<T>(all: { [K in keyof T]: Check<T[K]> }): Check<T> {
  return (value) => {
    if (!isRaw(value)) return null;
    const checked = (Object.keys(all) as (keyof T & string)[]).map((key) => [key, all[key](value[key])]);
    return checked.some(([, one]) => one === null) ? null : (Object.fromEntries(checked) as T);
  };
}

const axis = oneOf("x", "y", "z");
export const camera = fields<CameraState>({ eye: point, target: point, up: axis, orthographic: flag, height: number, fov: number });
export const legend = fields<View["legend"]>({ on: flag, x: number, y: number });
const colour = oneOf("status", "distance", "object");
export const rays = fields<RaysView>({ hits: flag, misses: flag, points: flag, colour });

export function rangesOfLabels(model: SceneModel): Check<View["ranges"]> {
  return (value) => {
    if (!isRaw(value)) return null;
    const ranges: View["ranges"] = {};
    for (const [name, range] of Object.entries(value)) {
      const ends = listOf(number)(range);
      const known = labelOf(model, name)?.kind === "number" || pointRanges(model).some((one) => one.name === name);
      if (ends?.length === 2 && known) ranges[name] = ends as [number, number];
    }
    return ranges;
  };
}

export const opacities: Check<View["opacity"]> = (value) => {
  if (!isRaw(value)) return null;
  const valid = Object.entries(value).filter((entry): entry is [string, number] => number(entry[1]) !== null);
  return Object.fromEntries(valid.map(([word, opacity]) => [word, Math.min(1, Math.max(0, opacity))]));
};

export function colourOf(model: SceneModel): Check<ColourBy> {
  return (value) => {
    if (!isRaw(value)) return null;
    const by = oneOf("file", "class", "label", "height", "plain")(value.by);
    if (by === "file") return model.palette ? { by } : null;
    if (by !== "label") return by && { by };
    const label = String(value.label);
    if (!labelOf(model, label)) return null;
    return label === model.classes ? { by: "class" } : { by, label };
  };
}

const side = { on: flag, at: number, flip: flag };
const axisPlane = fields<CutPlane>({ axis, ...side });
const normal: Check<Vec3> = (value) => point(value)?.some(Boolean) ? point(value) : null;
const freePlane = fields<CutPlane>({ axis: oneOf("free"), ...side, point, normal });
export const plane: Check<CutPlane> = (value) => axisPlane(value) ?? freePlane(value);

export const pictureScale: Check<number> = (value) => PICTURE_SCALES.find((scale) => scale === value) ?? null;

export function pointsOf(model: SceneModel): Check<PointsView> {
  return (value) => {
    if (!isRaw(value)) return null;
    const colour = oneOf(...pointColours(model).map((way) => way.value))(value.colour);
    const [size, limit] = [number(value.size) ?? 0, number(value.limit) ?? 0];
    return colour && size >= SIZES[0] && size <= SIZES[1] ? { colour, size, limit: limit > 0 ? limit : null } : null;
  };
}

export const ray: Check<NonNullable<View["ray"]>> = (value) => {
  if (!isRaw(value)) return null;
  const [origin, direction] = [point(value.origin), point(value.direction)];
  return origin && direction ? { origin, direction, row: number(value.row) } : null;
};
