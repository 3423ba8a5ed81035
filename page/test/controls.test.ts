import assert from "node:assert/strict";
import { test } from "node:test";
import { COMMANDS, CONTROLS, PARTS, partsByElement, restoredView, startView } from "../src/controls.ts";
import { Store } from "../src/store.ts";
import { sceneOfBoxes, sceneWithRays } from "./scenes.ts";

test("each control accepts its own start, and refuses what is nothing of the kind", () => {
  for (const model of [sceneOfBoxes(), sceneWithRays()]) {
    const start = startView(model, true);
    const other = Object.fromEntries(PARTS.map((part) => [part, Symbol()])) as never;
    assert.deepEqual(restoredView(model, JSON.parse(JSON.stringify({ ...start, dark: false })), other), {
      ...start,
      ...Object.fromEntries(PARTS.filter((part) => start[part] === null).map((part) => [part, other[part]])),
      dark: false,
    });
    for (const wrong of [7, "x", [null], { by: 3 }]) {
      const given = Object.fromEntries(PARTS.map((part) => [part, wrong]));
      const restored = restoredView(model, given, start);
      for (const part of PARTS) assert.ok(["ranges", "opacity"].includes(part) || restored[part] === start[part], part);
    }
  }
});

test("each key and each name is of one command", () => {
  for (const field of ["key", "name"] as const) {
    const all = COMMANDS.flatMap((command) => command[field] ?? []);
    assert.equal(new Set(all).size, all.length);
  }
  assert.ok(COMMANDS.every(({ help }) => help));
});

test("each part of the view has a control that changes it", () => {
  assert.deepEqual(new Set(Object.values(partsByElement())), new Set(PARTS));
});

test("what the stage draws follows the state", () => {
  const store = new Store(sceneOfBoxes(), startView(sceneOfBoxes(), false));
  store.set({ edges: false, selection: [1, 2], hidden: [1, 1], dark: true });
  const drawn = Object.assign({}, ...PARTS.map((part) => CONTROLS[part].draw?.(store)));
  assert.deepEqual([drawn.edges, drawn.highlight, drawn.dark, drawn.answer], [false, [2], true, null]);
  assert.deepEqual([...drawn.look.rgba.filter((_: number, at: number) => at % 4 === 3)], [255, 0, 255, 255, 255]);
});

test("rays are drawn at the start, unless they would cover the points of a scan", () => {
  const points = (row: number) => ({ xyz: new Float64Array(3), distance: new Float64Array(1), ray: Int32Array.of(row), fields: [] });
  const drawn = [null, points(-1), points(0)].map((one) => startView({ ...sceneWithRays(), points: one }, false).rays.hits);
  assert.deepEqual(drawn, [true, true, false]);
});
