import assert from "node:assert/strict";
import { test } from "node:test";

import { renumbered } from "../src/python.ts";
import { startView } from "../src/controls.ts";
import { sceneOfBoxes } from "./scenes.ts";

const before = sceneOfBoxes();
const view = { ...startView(before, true), hidden: [0, 1, 4, 4], unpickable: [3, 3], selection: [4, 1, 2] };

test("objects that stay keep what is hidden and selected, under their new numbers", () => {
  const now = { ...before, objects: 7 };
  assert.deepEqual(renumbered(view, before, now, [[0, 0, 5]]), view);
  const moved = renumbered(view, before, now, [
    [3, 0, 2],
    [0, 5, 2],
  ]);
  assert.deepEqual([moved.hidden, moved.unpickable, moved.selection], [[1, 1, 5, 6], [0, 0], [1, 6]]);
  assert.equal(moved.dark, true);
});

test("what is hidden at the start is so of new objects alone", () => {
  const now = { ...before, objects: 7, hiddenAtStart: Uint8Array.of(0, 0, 1, 1, 0, 1, 0) };
  assert.deepEqual(renumbered(view, before, now, [[0, 0, 5]]).hidden, [0, 1, 4, 5]);
  assert.deepEqual(renumbered(view, before, now, []).hidden, [2, 3, 5, 5]);
});
