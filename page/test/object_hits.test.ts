import assert from "node:assert/strict";
import { test } from "node:test";
import { hitRows, hitsByObject } from "../src/object_hits.ts";
import type { Hit } from "../src/types.ts";

const hit = (object: number, primitive: number, tEnter: number, tExit = tEnter): Hit => {
  return { object, geometry: 0, primitive, t: tEnter, tEnter, tExit };
};
const HITS = [hit(7, 1, 1), hit(3, 5, 2), hit(7, 2, 3), hit(4, 8, 3, 9), hit(7, 9, 5)];

test("a row is an object, in the order of its first contact, with t of entry and exit", () => {
  const rows = hitsByObject(HITS).map(({ object, hits, enter, exit }) => [object, hits.length, enter, exit]);
  assert.deepEqual(rows, [
    [7, 3, 1, 5],
    [3, 1, 2, 2],
    [4, 1, 3, 9],
  ]);
  assert.deepEqual(hitsByObject([]), []);
});

test("an open object has a row for each contact, one with a single contact none", () => {
  const objects = hitsByObject(HITS);
  assert.equal(hitRows(objects, new Set()).length, 3);
  const rows = hitRows(objects, new Set([7, 3]));
  assert.deepEqual(
    rows.map(({ of, contact }) => [of.object, contact?.primitive ?? null]),
    [
      [7, null],
      [7, 1],
      [7, 2],
      [7, 9],
      [3, null],
      [4, null],
    ],
  );
});
