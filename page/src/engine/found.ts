/** Hits of one ray, before they are sorted and rounded. */

import type { Ray } from "../types.ts";
import { WorldLine, type Contact, type Range, rangeOf } from "./contact.ts";
import { compareTimes, isBefore } from "./time.ts";

/** A hit: object and primitive count within the geometry. */
export interface Found {
  geometry: number;
  object: number;
  /** Row of the engine: of instances the copy, else the primitive. */
  index: number;
  primitive: number;
  contact: Contact;
}

/** One ray, and where its hits go. */
export class Query {
  readonly line: WorldLine;
  readonly range: Range;
  readonly found: Found[] = [];

  constructor(
    readonly ray: Ray,
    private readonly pickable: Uint8Array | null,
  ) {
    this.line = new WorldLine(ray);
    this.range = rangeOf(ray);
  }

  /** Returns whether an object of the scene can be hit. */
  canHit(object: number): boolean {
    return this.pickable === null || this.pickable[object] !== 0;
  }

  /** Sorts hits by exact time, then geometry, then row. */
  sorted(): Found[] {
    return this.found.sort(
      (a, b) =>
        compareTimes(a.contact.first, b.contact.first) ||
        a.geometry - b.geometry ||
        a.index - b.index ||
        a.primitive - b.primitive,
    );
  }

  /** Returns the float64 of the first contact: the start of the range, if the line entered before. */
  firstOf({ enter }: Contact): number {
    return isBefore(enter, this.range.start) ? this.range.start.value : enter.value;
  }
}

/** A geometry that finds its hits. */
export interface Target {
  find(query: Query): void;
}
