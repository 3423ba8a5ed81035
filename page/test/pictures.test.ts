import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { type FrameHost, Frames } from "../src/stage/frames.ts";
import type { Picture, Plan } from "../src/stage/picture.ts";

let clock = 0;
let waiting: (() => void)[] = [];
performance.now = () => clock;

beforeEach(() => {
  waiting = [];
  Object.assign(globalThis, { devicePixelRatio: 1, requestAnimationFrame: (act: () => void) => waiting.push(act) });
});

/** Draws three steps of some milliseconds a picture, until no frame is requested; returns the scales of what was shown. */
function drawn(slow: boolean, milliseconds: number): number[] {
  const shown: number[] = [];
  let scale = 0;
  const picture = {
    *drawing(plan: Plan) {
      scale = plan.scale;
      for (let step = 0; step < 3; step++) yield void (clock += milliseconds);
    },
    wait: () => undefined,
    show: () => undefined,
  } as unknown as Picture;
  const host = {
    plan: (quality) => ({ scale: quality.scale }) as Plan,
    shown: () => shown.push(scale),
  } satisfies FrameHost;
  const frames = new Frames(picture, host, slow);
  frames.invalidate(false);
  while (waiting.length > 0) waiting.splice(0).forEach((act) => act());
  assert.ok(frames.complete);
  return shown;
}

test("the last picture is the finer one on slow and fast devices, however long the first takes", () => {
  for (const slow of [true, false]) for (const milliseconds of [1, 200]) assert.deepEqual(drawn(slow, milliseconds), [1, 2]);
  assert.equal(drawn(true, 2000).at(-1), 2, "after parts of the first");
});

test("a screen of many pixels has no finer picture", () => {
  Object.assign(globalThis, { devicePixelRatio: 2 });
  assert.deepEqual(drawn(true, 1), [1]);
});
