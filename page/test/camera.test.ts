import assert from "node:assert/strict";
import { test } from "node:test";
import {
  basisOf,
  consistent,
  depthRange,
  distanceOf,
  fit,
  freeRectangle,
  orbit,
  pan,
  pixelRay,
  principalPoint,
  projector,
  standardDirection,
  type Viewport,
  withTargetAt,
  zoom,
} from "../src/stage/camera.ts";
import { reachOf } from "../src/stage/hull.ts";
import { distanceOfDepth, projectionOf, sidesOf } from "../src/stage/projection.ts";
import { along, type Bounds, corners, cross, dot, length, sub } from "../src/stage/vec.ts";
import type { Axis, CameraState, StandardView, Vec3 } from "../src/types.ts";

/** Map coordinates: float32 has steps of 3 centimetres there. */
const OFFSET: Vec3 = [84900, 447500, 3];
const SCENE: Bounds = { lower: along(OFFSET, [10, 5, 1], -1), upper: along(OFFSET, [10, 5, 1], 1) };
const VIEWS: StandardView[] = ["front", "back", "left", "right", "top", "bottom", "iso"];
const WIDE: Viewport = { width: 1280, height: 720, insets: { top: 40, right: 0, bottom: 0, left: 330 } };
const PHONE: Viewport = { width: 390, height: 844, insets: { top: 0, right: 0, bottom: 420, left: 0 } };

const camera = (orthographic: boolean, up: Axis = "z"): CameraState =>
  consistent({ eye: along(OFFSET, [20, -30, 12], 1), target: OFFSET, up, orthographic, height: 25, fov: 45 });

const near = (a: number, b: number, allowed: number) => assert.ok(Math.abs(a - b) <= allowed, `${a} is near ${b}`);

for (const orthographic of [false, true]) {
  const kind = orthographic ? "orthographic" : "perspective";

  test(`the ray of a pixel passes through the points drawn there: ${kind}`, () => {
    const state = camera(orthographic);
    const project = projector(state, WIDE);
    for (const [x, y] of [
      [350, 60],
      [805, 380],
      [1279.5, 719.5],
      [0, 0],
    ]) {
      const ray = pixelRay(state, WIDE, x, y, SCENE);
      near(length(ray.direction), 1, 1e-15);
      for (const t of [5, 40]) {
        const pixel = project(along(ray.origin, ray.direction, t));
        near(pixel.x, x, 1e-6);
        near(pixel.y, y, 1e-6);
      }
    }
  });

  test(`fitted corners are in the free part of the picture and touch its margin: ${kind}`, () => {
    for (const view of [WIDE, PHONE]) {
      for (const name of VIEWS) {
        for (const up of ["x", "y", "z"] as const) {
          const state = fit(camera(orthographic, up), view, reachOf(corners(SCENE)), standardDirection(name, up));
          const free = freeRectangle(view);
          const pixels = corners(SCENE).map(projector(state, view));
          const xs = pixels.map((pixel) => (pixel.x - free.x) / free.width);
          const ys = pixels.map((pixel) => (pixel.y - free.y) / free.height);
          assert.ok(Math.min(...xs, ...ys) > 0.03 && Math.max(...xs, ...ys) < 0.97, `${name} ${up}`);
          const margin = Math.min(...xs, ...ys, 1 - Math.max(...xs), 1 - Math.max(...ys));
          near(margin, 0.04, 1e-3);
          assert.ok(orthographic || pixels.every((pixel) => pixel.depth > 0));
        }
      }
    }
  });

  test(`a zoom leaves the point under the pointer: ${kind}`, () => {
    const state = camera(orthographic);
    const ray = pixelRay(state, WIDE, 400, 500, SCENE);
    const point = along(ray.origin, ray.direction, 30);
    const nearer = zoom(state, point, 0.5, 1e-6);
    const pixel = projector(nearer, WIDE)(point);
    near(pixel.x, 400, 1e-6);
    near(pixel.y, 500, 1e-6);
    near(nearer.height / state.height, 0.5, 1e-9);
    near(distanceOf(zoom(state, point, 1e-30, 0.01)), 0.01, 1e-6);
  });

  test(`a drag moves what is at the target by its pixels: ${kind}`, () => {
    const state = camera(orthographic);
    const moved = pan(state, WIDE, 30, -20);
    const pixel = projector(moved, WIDE)(state.target);
    near(pixel.x, principalPoint(WIDE).x + 30, 1e-6);
    near(pixel.y, principalPoint(WIDE).y - 20, 1e-6);
  });

  test(`an orbit leaves its pivot where it is: ${kind}`, () => {
    const state = camera(orthographic);
    const pivot = along(OFFSET, [3, 2, 1], 1);
    const before = projector(state, WIDE)(pivot);
    const turned = orbit(state, pivot, 1.1, 0.3);
    const after = projector(turned, WIDE)(pivot);
    near(after.x, before.x, 1e-5);
    near(after.y, before.y, 1e-5);
    near(distanceOf(turned), distanceOf(state), 1e-9);
    const [from, to] = [state, turned].map((one) => basisOf(one).forward);
    near(Math.atan2(to[1], to[0]) - Math.atan2(from[1], from[0]), -1.1, 1e-9);
    near(Math.asin(to[2]) - Math.asin(from[2]), -0.3, 1e-9);
  });

  test(`matrices put points where the projection in float64 has them: ${kind}`, () => {
    const state = camera(orthographic);
    const range = depthRange(state, SCENE);
    const { matrix, basis } = projectionOf(state, WIDE, range);
    for (const point of corners(SCENE)) {
      const from = sub(point, state.eye);
      const own = [dot(from, basis.right), dot(from, basis.up), -dot(from, basis.forward), 1];
      const clip = [0, 1, 2, 3].map((row) => own.reduce((sum, value, k) => sum + matrix[4 * k + row] * value, 0));
      const pixel = projector(state, WIDE)(point);
      near((clip[0] / clip[3] + 1) * 640, pixel.x, 1e-6);
      near((1 - clip[1] / clip[3]) * 360, pixel.y, 1e-6);
      const depth = (clip[2] / clip[3] + 1) / 2;
      assert.ok(depth >= 0 && depth <= 1);
      near(distanceOfDepth(depth, range, orthographic), pixel.depth, 1e-6);
    }
  });

  test(`what is within the sides is in the picture: ${kind}`, () => {
    const state = camera(orthographic);
    const project = projector(state, WIDE);
    const sides = sidesOf(state, WIDE);
    let inside = 0;
    for (let k = 0; k < 500; k++) {
      const point = along(OFFSET, [Math.sin(k) * 20, Math.cos(7 * k) * 20, Math.sin(3 * k) * 12], 1);
      const pixel = project(point);
      const drawn = pixel.x >= 0 && pixel.x <= 1280 && pixel.y >= 0 && pixel.y <= 720;
      inside += Number(drawn);
      if (pixel.depth > 0)
        assert.equal(
          sides.every(({ normal, offset }) => dot(normal, point) <= offset),
          drawn,
        );
    }
    assert.ok(inside > 50 && inside < 450);
  });
}

test("directions are a right-handed frame, also from above and below", () => {
  for (const up of ["x", "y", "z"] as const) {
    for (const name of VIEWS) {
      const state = { ...camera(false, up), eye: along(OFFSET, standardDirection(name, up), 50) };
      const { right, up: upward, forward } = basisOf(state);
      near(dot(cross(right, forward), upward), 1, 1e-9);
    }
  }
});

test("the view from above has y upward, the view from the front has z upward", () => {
  const from = (name: StandardView) =>
    basisOf({ ...camera(false), eye: along(OFFSET, standardDirection(name, "z"), 50) });
  near(from("top").up[1], 1, 1e-4);
  near(from("front").up[2], 1, 1e-12);
  near(from("front").right[0], 1, 1e-12);
});

test("an orbit stops at the poles", () => {
  let state = camera(false);
  for (let k = 0; k < 20; k++) state = orbit(state, OFFSET, 0.1, 0.5);
  near(basisOf(state).forward[2], -1, 1e-6);
  for (let k = 0; k < 20; k++) state = orbit(state, OFFSET, 0.1, -0.5);
  near(basisOf(state).forward[2], 1, 1e-6);
});

test("orthographic rays begin in front of the whole scene", () => {
  const state = { ...camera(true), eye: OFFSET, target: along(OFFSET, [0, 1, 0], 1) };
  const { forward } = basisOf(state);
  const { origin } = pixelRay(state, WIDE, 500, 300, SCENE);
  assert.ok(corners(SCENE).every((corner) => dot(sub(corner, origin), forward) > 0));
});

test("the kind of projection changes without a change of scale", () => {
  const state = camera(false);
  const there = consistent({ ...state, orthographic: true });
  const back = consistent({ ...there, orthographic: false });
  near(there.height, state.height, 1e-12);
  near(distanceOf(back), distanceOf(state), 1e-6);
});

test("a camera that is read and set again is the same to the bit", () => {
  for (const orthographic of [false, true]) {
    let state = orbit(camera(orthographic), OFFSET, 0.3, 0.2);
    state = consistent(zoom(state, along(OFFSET, [1, 2, 3], 1), 0.7, 1e-6));
    assert.deepEqual(consistent(structuredClone(state)), state);
  }
});

test("a new target keeps the picture", () => {
  for (const orthographic of [false, true]) {
    const state = camera(orthographic);
    const point = along(OFFSET, [4, 1, 1], 1);
    const moved = withTargetAt(state, point);
    const [a, b] = [projector(state, WIDE)(point), projector(moved, WIDE)(point)];
    near(a.x, b.x, 1e-6);
    near(distanceOf(moved), projector(moved, WIDE)(point).depth, 1e-6);
  }
});

test("panels that cover nearly all leave the whole picture", () => {
  assert.equal(freeRectangle({ ...PHONE, insets: { ...PHONE.insets, bottom: 800 } }).height, 844);
});
