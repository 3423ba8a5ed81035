import assert from "node:assert/strict";
import { test } from "node:test";
import { find } from "../src/find.ts";
import { missOf } from "../src/geometry.ts";
import { codedLabel, groupLabels, Naming, numberLabels } from "../src/labels.ts";
import { startView } from "../src/controls.ts";
import { Store } from "../src/store.ts";
import { fromRanges, toRanges, visibilityOf } from "../src/visibility.ts";
import { sceneOfBoxes } from "./scenes.ts";

const model = sceneOfBoxes();
const nothing = { hidden: [], unpickable: [], ranges: {} };

test("ranges give back the bytes that they were made of", () => {
  for (const bits of [[], [0], [1], [1, 1, 0, 1], [0, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1]]) {
    const bytes = Uint8Array.from(bits);
    assert.deepEqual(fromRanges(toRanges(bytes), bytes.length), bytes);
  }
  assert.deepEqual(toRanges(Uint8Array.of(0, 1, 1, 0, 1)), [1, 2, 4, 4]);
  assert.deepEqual([...fromRanges([1, 9], 3)], [0, 1, 1]);
});

test("hidden objects are neither drawn nor hit, unpickable ones only not hit", () => {
  const { shown, pickable, shownCount } = visibilityOf(model, { ...nothing, hidden: [0, 1], unpickable: [1, 2] });
  assert.deepEqual([...shown], [0, 0, 1, 1, 1]);
  assert.deepEqual([...pickable], [0, 0, 0, 1, 1]);
  assert.equal(shownCount, 3);
});

test("a range hides what is outside it and what has no value, its ends included", () => {
  assert.deepEqual([...visibilityOf(model, { ...nothing, ranges: { height: [2, 3] } }).shown], [0, 1, 1, 0, 0]);
  assert.deepEqual([...visibilityOf(model, { ...nothing, ranges: { unknown: [2, 3] } }).shown], [1, 1, 1, 1, 1]);
});

test("a store calls the watchers of a changed part once, and computes filters once", () => {
  const store = new Store(model, startView(model, false));
  const calls: string[] = [];
  store.watch(["hidden", "ranges"], () => calls.push("filters"));
  store.watch(["dark"], () => calls.push("dark"));
  store.set({ hidden: [0, 0], ranges: { height: [1, 2] } });
  store.set({ dark: false });
  assert.deepEqual(calls, ["filters", "dark", "filters"]);
  assert.equal(store.visibility, store.visibility);
});

test("undo takes back filters step by step; one slider's movement is one step", () => {
  const store = new Store(model, startView(model, false));
  store.filter({ hidden: [0, 0] });
  store.filter({ ranges: { height: [1, 3] } }, "range");
  store.filter({ ranges: { height: [2, 3] } }, "range");
  store.undo();
  assert.deepEqual(store.state.ranges, {});
  assert.deepEqual(store.state.hidden, [0, 0]);
  store.undo();
  assert.deepEqual(store.state.hidden, []);
  assert.equal(store.state.undoable, 0);
  store.undo();
});

test("find returns exact matches first, then starts, then parts, by number, id, name and label", () => {
  assert.deepEqual(find(model, "door"), [2, 1, 3]);
  assert.deepEqual(find(model, "#3"), [3]);
  assert.deepEqual(find(model, "id-4"), [4]);
  assert.deepEqual(find(model, "WALL"), [0, 1, 4]);
  assert.deepEqual(find(model, "   "), []);
});

test("find takes words in any order; among words, a number is a whole one", () => {
  const storey = { name: "storey", kind: "class" as const, words: ["Level 1", "Level 11"], codes: Uint32Array.of(0, 1, 0, 1, 0) };
  const labels = [...model.labels, storey];
  const ids = model.ids!.map((_, at) => `1hOSvn6df7F8_7G-0${at}`);
  const levels = { ...model, ids, labels, levels: "storey" };
  assert.deepEqual(find(levels, "wall level 1"), [0, 4]);
  assert.deepEqual(find(levels, "1, Level wall"), [0, 4]);
  assert.deepEqual(find(levels, "level 11"), [1, 3]);
  assert.deepEqual(find(levels, "wall door"), [1]);
  assert.deepEqual(find(levels, "door wall"), [1]);
  assert.deepEqual(find(levels, "wall window"), []);
});

test("find compares labels", () => {
  assert.deepEqual(find(model, "height >= 3"), [2, 3]);
  assert.deepEqual(find(model, "Type = wall"), [0, 1, 4]);
  assert.deepEqual(find(model, "height = 2"), [1]);
});

test("labels group if several objects share a word; numbers filter if they differ", () => {
  assert.deepEqual(groupLabels(model), ["type", "name"]);
  assert.deepEqual(
    numberLabels(model).map(({ name, extent }) => [name, extent]),
    [["height", [1, 4]]],
  );
  assert.deepEqual([...codedLabel(model, "type")!.counts], [3, 1, 1]);
});

test("objects are named by class and name, without a name by a short id or the number", () => {
  const naming = new Naming(model);
  assert.equal(naming.full(0), "wall north");
  assert.equal(naming.full(4), "wall id-4");
  const ids = model.ids!.map(() => "0123456789abcdef0123456789abcdef");
  assert.equal(new Naming({ ...model, ids }).full(4), "wall #4");
  assert.equal(new Naming({ ...model, ids: null, classes: null, names: null }).full(4), "box #4");
});

test("a miss names the primitive of an object that has exactly one", () => {
  assert.deepEqual(missOf(model, 3), { object: 3, geometry: 0, primitive: 3, t: NaN, tEnter: NaN, tExit: NaN });
  assert.equal(missOf(model, 9), null);
  assert.equal(missOf({ ...model, geometries: [{ ...model.geometries[0], type: "mesh" } as never] }, 3), null);
});
