import assert from "node:assert/strict";
import { test } from "node:test";

import { compareRatios, ratioOf, rounded, whole } from "../src/engine/exact.ts";
import { compareTimes, planeTime, Time } from "../src/engine/time.ts";

const LEAST = 5e-324;

test("floats are integers over a power of two", () => {
  for (const x of [1, -0.1, 1e300, -1e-300, LEAST, 3 * LEAST, Number.MAX_VALUE, 2 ** 53 + 2, 123456.789, -0]) {
    const { integers, shift } = whole([x, 0.5]);
    assert.equal(rounded({ n: integers[0], d: 1n << shift }), x + 0);
  }
});

test("quotients are rounded once, ties to even", () => {
  const two = (power: number) => 1n << BigInt(power);
  const cases: [bigint, bigint, number][] = [
    [1n, 3n, 1 / 3],
    [-2n, 3n, -2 / 3],
    [two(53) + 1n, 1n, 2 ** 53],
    [two(53) + 3n, 1n, 2 ** 53 + 4],
    [two(54) + 2n, 1n, 2 ** 54],
    [(two(53) + 1n) * two(80) + 1n, two(80), 2 ** 53 + 2],
    [1n, two(1074), LEAST],
    [1n, two(1075), 0],
    [3n, two(1075), 2 * LEAST],
    [5n, two(1075), 2 * LEAST],
    [5n * two(200) + 1n, two(1275), 3 * LEAST],
    [-7n, two(1075), -4 * LEAST],
    [two(54) - 1n, two(1076), 2 ** -1022],
    [two(53) - 1n, two(1075), 2 ** -1022],
    [two(1024) - two(970), 1n, Infinity],
    [two(1024) - two(970) - 1n, 1n, Number.MAX_VALUE],
    [two(2000), 1n, Infinity],
    [-two(2000), 1n, -Infinity],
    [1n, 0n, Infinity],
    [-1n, 0n, -Infinity],
  ];
  for (const [n, d, value] of cases) assert.equal(rounded({ n, d }), value, `${n} / ${d}`);
});

test("quotients of floats are those of the processor", () => {
  let seed = 1;
  const next = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < 2000; i++) {
    const [x, y] = [next() * 2 ** (2000 * next() - 1000), next() * 2 ** (2000 * next() - 1000)];
    const [a, b] = [ratioOf(x), ratioOf(y)];
    assert.equal(rounded({ n: a.n * b.d, d: a.d * b.n }), x / y, `${x} / ${y}`);
  }
});

test("times of planes are exact where the difference is rounded", () => {
  const c = 2 ** 52 + 3; // 7 c is no float64
  const time = planeTime(8 * c, c, c);
  assert.equal(time.value, 7);
  assert.equal(compareTimes(time, Time.at(7)), 0);
  const near = planeTime(8 * c + 8, c, c);
  assert.equal(compareTimes(near, time), 1);
  assert.equal(compareRatios(near.ratio, time.ratio), 1);
});

test("times are never -0", () => {
  assert.ok(Object.is(planeTime(1, 1, -3).value, 0));
  assert.ok(Object.is(planeTime(-LEAST, 0, 1e300).value, 0));
  assert.ok(Object.is(Time.at(-0).value, 0));
});
