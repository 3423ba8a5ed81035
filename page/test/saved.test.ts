import assert from "node:assert/strict";
import { test } from "node:test";

import { SavedCaster, withState } from "../src/saved.ts";
import type { Ray, ViewState } from "../src/types.ts";
import { sceneOfBoxes, sceneWithRays } from "./scenes.ts";

const HTML = '<html><script type="application/json" id="raybox-state">{"version":1}</script><script>page()</script></html>';
const RAY: Ray = { origin: [-1, 0.5, 0.5], direction: [2, 0, 0], tMin: 0, tMax: Infinity };

test("a saved page answers by itself, of what is pickable", async () => {
  const caster = new SavedCaster(sceneOfBoxes(), HTML);
  assert.equal(caster.reason, null);
  const { hits } = await caster.pick(RAY);
  assert.deepEqual(hits.map(({ object, t, tExit }) => [object, t, tExit]), [[0, 0.5, 1]]);
  caster.setPickable(Uint8Array.of(0, 1, 1, 1, 1));
  assert.equal((await caster.pick(RAY)).total, 0);
});

test("what is hidden at the start is not hit until another mask comes", async () => {
  const caster = new SavedCaster({ ...sceneOfBoxes(), hiddenAtStart: Uint8Array.of(1, 0, 0, 0, 0) }, HTML);
  assert.equal((await caster.pick(RAY)).total, 0);
  caster.setPickable(Uint8Array.of(1, 1, 1, 1, 1));
  assert.equal((await caster.pick(RAY)).total, 1);
});

test("rows of the sample are cast, others are refused", async () => {
  const model = sceneWithRays();
  const caster = new SavedCaster({ ...model, rays: { ...model.rays!, row: Uint32Array.of(0, 10, 20, 30) } }, HTML);
  const answer = await caster.row(10);
  assert.deepEqual([answer.row, answer.hits[0].object], [10, 0]);
  await assert.rejects(caster.row(1), /Ray 1 is not among the 4 rays/);
});

test("a page that does not pick gives the reason", async () => {
  const model = { ...sceneOfBoxes(), offline: "none" as const, offlineReason: "It has planes." };
  const caster = new SavedCaster(model, HTML);
  assert.equal(caster.reason, "It has planes.");
  await assert.rejects(caster.pick(RAY), /planes/);
});

test("a saved page is saved with another state, in which nothing ends the element", async () => {
  const state = { version: 1, colour: { by: "label", label: "</script><b>$&" } } as ViewState;
  const html = withState(HTML, state);
  assert.equal(html.split("</script>").length, 3);
  const text = html.slice(html.indexOf(">{") + 1, html.indexOf("</script>"));
  assert.deepEqual(JSON.parse(text), state);
  assert.equal(withState(html, { version: 1 } as ViewState), HTML);
  assert.throws(() => withState("<html></html>", state), /no place/);
});
