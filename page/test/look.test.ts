import assert from "node:assert/strict";
import { test } from "node:test";
import { BEHIND, CATEGORIES, FIRST, HIT, MISS, OTHER, RAMP, ramp, rgb } from "../src/look.ts";

type Row = [number, number, number];

/** Linear RGB as people with each colour vision have it, at full severity (Machado, Oliveira and Fernandes, 2009). */
const VISIONS: Record<string, Row[]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const XYZ: Row[] = [
  [0.4124564, 0.3575761, 0.1804375],
  [0.2126729, 0.7151522, 0.072175],
  [0.0193339, 0.119192, 0.9503041],
];
const WHITE = [0.95047, 1, 1.08883];

const times = (rows: Row[], x: number[]) => rows.map((row) => row[0] * x[0] + row[1] * x[1] + row[2] * x[2]);
const linear = (byte: number) => (byte <= 10.31475 ? byte / 3294.6 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
const curve = (x: number) => (x > 216 / 24389 ? Math.cbrt(x) : ((24389 / 27) * x + 16) / 116);

/** Returns CIELAB of a colour as a vision has it. */
function lab(hex: string, vision: Row[]): number[] {
  const light = times(vision, rgb(hex).map(linear)).map((x) => Math.min(1, Math.max(0, x)));
  const [x, y, z] = times(XYZ, light).map((value, a) => curve(value / WHITE[a]));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const distance = (a: string, b: string, vision: Row[]) => {
  const [p, q] = [lab(a, vision), lab(b, vision)];
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
};

for (const [name, vision] of Object.entries(VISIONS)) {
  test(`classes differ in colour: ${name}`, () => {
    const all = [...CATEGORIES, OTHER];
    all.forEach((a, i) => all.slice(i + 1).forEach((b) => assert.ok(distance(a, b, vision) > 25, `${a} and ${b}`)));
  });

  test(`hits and misses, the first object and the others differ: ${name}`, () => {
    assert.ok(distance(HIT, MISS, vision) > 25);
    assert.ok(distance(FIRST, BEHIND, vision) > 25);
  });

  test(`neighbours of the continuous scale differ, and it grows lighter: ${name}`, () => {
    RAMP.slice(1).forEach((stop, k) => {
      assert.ok(distance(RAMP[k], stop, vision) > 7, `${RAMP[k]} and ${stop}`);
      assert.ok(lab(stop, vision)[0] > lab(RAMP[k], vision)[0], `${stop} is lighter than ${RAMP[k]}`);
    });
  });
}

test("the continuous scale passes through its stops", () => {
  RAMP.forEach((stop, k) => assert.deepEqual(ramp(k / (RAMP.length - 1)), rgb(stop)));
  assert.deepEqual(ramp(-1), rgb(RAMP[0]));
  assert.deepEqual(ramp(2), rgb(RAMP[RAMP.length - 1]));
  assert.deepEqual(ramp(Number.NaN), rgb(RAMP[0]));
});
