/** The line of sight between two points on objects: those two objects do not count. */

import { along, sub } from "./stage/vec.ts";
import type { Answer, Ray, Vec3 } from "./types.ts";

export interface SightEnd {
  point: Vec3;
  object: number;
}

/** Returns the point that a click hits first; null if it hits nothing. */
export function endOf({ ray, hits }: Answer): SightEnd | null {
  const [first] = hits;
  return first ? { point: along(ray.origin, ray.direction, first.t), object: first.object } : null;
}

/** Returns the ray between two ends: t is from 0 to 1. */
export function sightRay(from: SightEnd, to: SightEnd): Ray {
  return { origin: from.point, direction: sub(to.point, from.point), tMin: 0, tMax: 1 };
}

/** Returns an answer without the hits of the objects at the ends. */
export function between(answer: Answer, ends: number[]): Answer {
  const hits = answer.hits.filter(({ object }) => !ends.includes(object));
  return { ...answer, ends, hits, total: answer.total - answer.hits.length + hits.length };
}
