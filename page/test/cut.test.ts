import assert from "node:assert/strict";
import { test } from "node:test";
import { halfSpaces, limitRay, movePlane, planeInBounds, rangeInBounds, turnPlane } from "../src/stage/cut.ts";
import { along, dot, length, sub, unit } from "../src/stage/vec.ts";
import type { CutPlane, Ray, Vec3 } from "../src/types.ts";

const plane = (axis: CutPlane["axis"], at: number, more: Partial<CutPlane> = {}): CutPlane => ({
  axis,
  on: true,
  at,
  flip: false,
  ...more,
});
const ray = (origin: Vec3, direction: Vec3): Ray => ({ origin, direction, tMin: 0, tMax: Infinity });
const BOUNDS = { lower: [-1, -2, -3] as Vec3, upper: [1, 2, 3] as Vec3 };

test("a plane cuts away the side of its normal", () => {
  const from = ray([0, 0, 10], [0, 0, -2]);
  assert.deepEqual(limitRay(from, halfSpaces([plane("z", 4)])), { ...from, tMin: 3 });
  assert.deepEqual(limitRay(from, halfSpaces([plane("z", 4, { flip: true })])), { ...from, tMax: 3 });
  assert.deepEqual(limitRay(from, halfSpaces([plane("z", 4, { on: false })])), from);
});

test("planes that leave nothing of a ray leave no ray", () => {
  assert.equal(limitRay(ray([0, 0, 10], [1, 0, 0]), halfSpaces([plane("z", 4)])), null);
  const both = [plane("x", 1), plane("x", 2, { flip: true })];
  assert.equal(limitRay(ray([0, 0, 0], [1, 0, 0]), halfSpaces(both)), null);
});

test("a ray within the plane itself is left", () => {
  const within = ray([0, 0, 4], [1, 0, 0]);
  assert.deepEqual(limitRay(within, halfSpaces([plane("z", 4)])), within);
});

test("the limit has no error of rounding where float64 has none, at map coordinates", () => {
  const from = ray([84900.5, 447500.25, 100], [0, 0, -1]);
  assert.equal(limitRay(from, halfSpaces([plane("z", 2.75)]))!.tMin, 97.25);
});

test("a free plane limits rays at its points", () => {
  const normal: Vec3 = [1, 2, -2];
  const point: Vec3 = [3, 1, 0];
  for (let k = 0; k < 100; k++) {
    const from = ray([10 * Math.sin(k), 10 * Math.cos(k), Math.sin(3 * k)], unit([Math.cos(5 * k), 1, Math.sin(k)]));
    const left = limitRay(from, halfSpaces([plane("free", 0, { point, normal })]));
    for (const t of [0, 0.5, 3, 20]) {
      const side = dot(normal, sub(along(from.origin, from.direction, t), point));
      if (Math.abs(side) < 1e-9) continue;
      assert.equal(left !== null && t >= left.tMin && t <= left.tMax, side < 0);
    }
  }
});

test("a line has a range within bounds", () => {
  assert.deepEqual(rangeInBounds([-5, 0, 0], [2, 0, 0], BOUNDS), [2, 3]);
  assert.equal(rangeInBounds([-5, 9, 0], [2, 0, 0], BOUNDS), null);
});

test("the part of a plane within bounds is on the plane and within bounds", () => {
  const normal = unit([1, 0.5, 0.25]);
  const polygon = planeInBounds({ point: [0.2, 0, 0], normal }, BOUNDS);
  assert.ok(polygon.length >= 3 && polygon.length <= 6);
  for (const corner of polygon) {
    assert.ok(Math.abs(dot(normal, sub(corner, [0.2, 0, 0]))) < 1e-12);
    assert.ok(corner.every((value, a) => value >= BOUNDS.lower[a] - 1e-9 && value <= BOUNDS.upper[a] + 1e-9));
  }
  assert.equal(planeInBounds({ point: [0, 0, 9], normal: [0, 0, 1] }, BOUNDS).length, 0);
});

test("a plane across an axis has the corners of the bounds", () => {
  const polygon = planeInBounds({ point: [0, 0, 1], normal: [0, 0, 1] }, BOUNDS);
  const corners = new Set(polygon.map((corner) => corner.map((value) => value.toFixed(9)).join(" ")));
  assert.equal(corners.size, 4);
  assert.ok(corners.has("1.000000000 2.000000000 1.000000000"));
});

test("a dragged plane follows the pointer along its normal", () => {
  const free = plane("free", 0, { point: [0, 0, 0], normal: [0, 0, 1] });
  const moved = movePlane(free, [0, 0, 0], ray([5, 0, 3], [-1, 0, 0]));
  assert.ok(length(sub(moved.point!, [0, 0, 3])) < 1e-12);
  const along_ = movePlane(free, [0, 0, 0], ray([0, 0, 9], [0, 0, -1]));
  assert.deepEqual(along_.point, [0, 0, 0]);
});

test("a turned plane points to where the pointer is on a sphere about it", () => {
  const free = plane("free", 0, { point: [0, 0, 0], normal: [0, -1, 0] });
  const turned = turnPlane(free, 2, ray([1, -9, 0], [0, 1, 0]));
  assert.ok(length(sub(turned.normal!, unit([1, -Math.sqrt(3), 0]))) < 1e-12);
  const outside = turnPlane(free, 2, ray([7, -9, 0], [0, 1, 0]));
  assert.ok(length(sub(outside.normal!, [1, 0, 0])) < 1e-12);
});
