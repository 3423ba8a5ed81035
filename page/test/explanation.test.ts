import assert from "node:assert/strict";
import { test } from "node:test";

import { pairOf, type BoxPair, type TrianglePair } from "../src/engine/pair.ts";
import { explainHit } from "../src/explanation.ts";
import { isOver, slabPicture, trianglePicture, type Picture } from "../src/pair_picture.ts";
import type { BoxesGeometry, Geometry, Hit, MeshGeometry, Ray, Vec3 } from "../src/types.ts";

const BOX: BoxesGeometry = {
  type: "boxes",
  firstObject: 0,
  objects: 1,
  primitives: 1,
  lower: Float64Array.of(1, 0, 0),
  upper: Float64Array.of(4, 1, 1),
};
const MESH: MeshGeometry = {
  type: "mesh",
  firstObject: 0,
  objects: 1,
  primitives: 1,
  vertices: Float64Array.of(0, 0, 0, 1, 0, 0, 0, 1, 0),
  faces: Uint32Array.of(0, 1, 2),
  triangleObjects: Uint32Array.of(0),
  edges: new Uint32Array(0),
};
const HIT: Hit = { object: 0, geometry: 0, primitive: 0, t: NaN, tEnter: NaN, tExit: NaN };

function ray(origin: Vec3, direction: Vec3, tMin = 0, tMax = Infinity): Ray {
  return { origin, direction, tMin, tMax };
}

function explain(geometry: Geometry, one: Ray) {
  return explainHit({ geometries: [geometry] }, one, HIT);
}

test("the slabs of a hit, with t as a fraction", () => {
  const { axes, verdict, t, text } = explain(BOX, ray([0, 0, 0], [3, 1, 1]));
  assert.deepEqual(axes[0], { axis: "x", lower: "1", upper: "4", near: "0.3333333333333333", far: "1.3333333333333333" });
  assert.deepEqual([verdict, t], ["hit at t = 0.3333333333333333", "1/3 = 0.3333333333333333"]);
  assert.match(text, /from t = 0\.3333333333333333 \(x\) to 1 \(y\)\.$/);
});

test("the reason of each kind of miss", () => {
  const reason = (one: Ray) => explain(BOX, one).text;
  assert.match(reason(ray([0, 9, 0], [1, 0, 0])), /parallel to the planes of y, and not between/);
  assert.match(reason(ray([0, 0, 0], [1, 3, 0])), /leaves the planes of y at 0\.33.*before it enters those of x at 1\./);
  assert.match(reason(ray([0, 0, 0], [1, 0, 0], 5)), /nothing of that is from 5 to inf/);
  assert.equal(explain(BOX, ray([0, 9, 0], [1, 0, 0])).verdict, "miss");
  assert.deepEqual(Object.values(explain(BOX, ray([0, 9, 0], [1, 0, 0])).axes[1]).slice(3), ["inf", "-inf"]);
});

test("a ray that starts inside, and one that is a point", () => {
  assert.match(explain(BOX, ray([2, 0.5, 0.5], [1, 0, 0])).text, /starts inside, at 0/);
  const point = explain(BOX, ray([2, 0.5, 0.5], [0, 0, 0]));
  assert.deepEqual([point.verdict, point.text.split("\n")[1]], ["hit at t = 0", "The direction is zero: the ray is one point."]);
});

test("the weights of a triangle's corners", () => {
  const { text, verdict, t } = explain(MESH, ray([0.25, 0.5, 1], [0, 0, -3]));
  assert.deepEqual([verdict, t], ["hit at t = 0.3333333333333333", "1/3 = 0.3333333333333333"]);
  assert.match(text, /Weights of A, B, C: 0\.25, 0\.25, 0\.5$/);
  const miss = explain(MESH, ray([2, 0.5, 1], [0, 0, -3]));
  assert.deepEqual([miss.verdict, miss.t], ["miss", ""]);
  assert.match(miss.text, /Weights of A, B, C: -1\.5, 2, 0\.5/);
  assert.match(explain(MESH, ray([2, 0.5, 1], [1, 0, 0])).text, /parallel to the triangle's plane/);
});

test("a copy is explained in the coordinates of what is copied", () => {
  const transforms = Float64Array.of(1, 0, 0, 50, 0, 1, 0, 0, 0, 0, 1, 0, 2, 0, 0, 5, 0, 1, 0, 0, 0, 0, 1, 0);
  const copies: Geometry = { type: "instances", firstObject: 0, objects: 2, primitives: 2, transforms, base: BOX };
  const found = explainHit({ geometries: [copies] }, ray([0, 0.5, 0.5], [1, 0, 0]), { ...HIT, primitive: 1 });
  assert.deepEqual([found.axes[0].lower, found.axes[0].near, found.t], ["1", "7", "7"]);
  assert.match(found.text, /^box 0 of copy 1/);
});

test("a plane is explained by its equation", () => {
  const size = { firstObject: 0, objects: 1, primitives: 1 };
  const [points, normals, offsets] = [new Float64Array(3), Float64Array.of(0, 0, 0.75), Float64Array.of(0.5)];
  const plane: Geometry = { type: "planes", ...size, points, normals, offsets };
  const { text, verdict, t } = explain(plane, ray([0, 0, 0.25], [0, 1, 1]));
  assert.deepEqual([verdict, t], ["hit at t = 0.4166666666666667", "5/12 = 0.4166666666666667"]);
  assert.match(text, /^plane 0\nIts points p: \(0, 0, 0\.75\) · p = 0\.5\n.*at t = 5\/12/);
  const late = explain(plane, ray([0, 0, 0], [0, 0, 1], 1));
  assert.deepEqual([late.verdict, late.t], ["miss", ""]);
  assert.match(late.text, /range is from 1 to inf/);
  assert.match(explain(plane, ray([0, 0, 0], [1, 0, 0])).text, /parallel to the plane/);
});

function assertInside({ width, height, shapes }: Picture): void {
  const numbers = JSON.stringify(shapes, (_, value) => (typeof value === "number" && !Number.isFinite(value) ? "bad" : value));
  assert.ok(!numbers.includes("bad"), numbers);
  for (const shape of shapes) {
    if ("x" in shape) assert.ok(shape.x >= 0 && shape.x <= width && shape.y >= 0 && shape.y <= height, JSON.stringify(shape));
  }
  const texts = shapes.flatMap((shape) => (shape.kind === "text" ? [shape] : []));
  texts.forEach((a, k) => texts.slice(k + 1).forEach((b) => assert.ok(!isOver(a, b), `${a.text} is over ${b.text}`)));
}

test("drawings stay within their pictures", () => {
  const rays = [
    ray([0, 0, 0], [3, 1, 1]),
    ray([0, 9, 0], [1, 0, 0], -Infinity, 1e300),
    ray([2, 0.5, 0.5], [0, 0, 0], 0, 0),
    ray([1e9, 0.25, 7], [-1, 0, -1e-9], 1, 2),
    ray([0.2, 0.2, 9], [1e-3, 0, -1]),
  ];
  for (const one of rays) {
    assertInside(slabPicture(pairOf({ geometries: [BOX] }, one, HIT) as BoxPair, one));
    assertInside(trianglePicture(pairOf({ geometries: [MESH] }, one, HIT) as TrianglePair));
  }
});

test("the bar that all axes share is where the box is", () => {
  const one = ray([0, 0, 0], [2, 1, 1]);
  const { shapes } = slabPicture(pairOf({ geometries: [BOX] }, one, HIT) as BoxPair, one);
  const bars = shapes.filter((shape) => shape.kind === "bar");
  assert.equal(bars.length, 4);
  const [x, , z, shared] = bars;
  assert.equal(shared.x, x.x);
  assert.ok(Math.abs(shared.x + shared.width - (z.x + z.width)) < 1e-9);
});

test("letters of a sliver are not printed over one another", () => {
  for (const x of [1, 0.1, 1e-3, 0]) {
    const vertices = Float64Array.of(0, 0, 0, x, 0, 0, 0, 1, 0, x);
    const pair = pairOf({ geometries: [{ ...MESH, vertices }] }, ray([x / 5, 0.5, 5], [0, 0, -1]), HIT);
    assertInside(trianglePicture(pair as TrianglePair));
  }
});
