/** The hits of a ray by objects, as the list shows them: a row an object, which opens to its contacts. */

import type { Hit } from "./types.ts";

export interface ObjectHits {
  object: number;
  /** Its contacts with the ray, in order. */
  hits: Hit[];
  enter: number;
  exit: number;
}

/** A row of the list: an object, or one of its contacts. */
export interface HitRow {
  of: ObjectHits;
  /** null for the object. */
  contact: Hit | null;
}

/** Returns the objects of hits in the order of their first contacts. */
export function hitsByObject(hits: readonly Hit[]): ObjectHits[] {
  const found = new Map<number, ObjectHits>();
  for (const hit of hits) {
    const { object, tEnter, tExit } = hit;
    const of = found.get(object);
    if (!of) found.set(object, { object, hits: [hit], enter: tEnter, exit: tExit });
    else {
      of.hits.push(hit);
      of.enter = Math.min(of.enter, tEnter);
      of.exit = Math.max(of.exit, tExit);
    }
  }
  return [...found.values()];
}

/** Returns the rows of the list, with the contacts of the objects that are open. */
export function hitRows(objects: readonly ObjectHits[], open: ReadonlySet<number>): HitRow[] {
  return objects.flatMap((of): HitRow[] => {
    const contacts = of.hits.length > 1 && open.has(of.object) ? of.hits : [];
    return [{ of, contact: null }, ...contacts.map((contact) => ({ of, contact }))];
  });
}
