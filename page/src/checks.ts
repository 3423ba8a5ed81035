/** Checks of values from a link or a saved page: null where a value does not fit the scene. */

import { labelOf } from "./labels.ts";
import { unpackSet } from "./object_set.ts";
import { pointColours, pointRanges } from "./points.ts";
import type { CameraState, ColourBy, CutPlane, PointsView, RaysView, SceneModel, Vec3, View } from "./types.ts";

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

export const camera: Check<CameraState> = (value) => {
  if (!isRaw(value)) return null;
  const [eye, target, up] = [point(value.eye), point(value.target), oneOf("x", "y", "z")(value.up)];
  const [orthographic, height, fov] = [flag(value.orthographic), number(value.height), number(value.fov)];
  if (!eye || !target || !up || orthographic === null || height === null || fov === null) return null;
  return { eye, target, up, orthographic, height, fov };
};

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
    const by = oneOf("class", "label", "height", "plain")(value.by);
    if (by !== "label") return by && { by };
    const label = String(value.label);
    if (!labelOf(model, label)) return null;
    return label === model.classes ? { by: "class" } : { by, label };
  };
}

export const plane: Check<CutPlane> = (value) => {
  if (!isRaw(value)) return null;
  const axis = oneOf("x", "y", "z", "free")(value.axis);
  const [on, at, flip] = [flag(value.on), number(value.at), flag(value.flip)];
  if (!axis || on === null || at === null || flip === null) return null;
  if (axis !== "free") return { axis, on, at, flip };
  const [place, normal] = [point(value.point), point(value.normal)];
  return place && normal && normal.some(Boolean) ? { axis, on, at, flip, point: place, normal } : null;
};

export const legend: Check<View["legend"]> = (value) => {
  if (!isRaw(value)) return null;
  const [on, x, y] = [flag(value.on), number(value.x), number(value.y)];
  return on === null || x === null || y === null ? null : { on, x, y };
};

export const rays: Check<RaysView> = (value) => {
  if (!isRaw(value)) return null;
  const [hits, misses, points] = [flag(value.hits), flag(value.misses), flag(value.points)];
  const by = oneOf("status", "distance", "object")(value.colour);
  if (hits === null || misses === null || points === null || !by) return null;
  return { hits, misses, points, colour: by };
};

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
