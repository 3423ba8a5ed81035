/** What is drawn over the shapes: rays, points, the ray that was cast, outlines of what is chosen. */

import type * as THREE from "three";
import { BEHIND, FIRST, rgb } from "../look.ts";
import type { Answer, Drawing, SceneModel, Vec3 } from "../types.ts";
import type { Projected } from "./camera.ts";
import { MOST_OUTLINES, outlineOf } from "./outline.ts";
import type { SharedUniforms } from "./program.ts";
import { drawnAnswer, type Near, nearestLine, raySegments } from "./rays.ts";
import { Dots, Ribbons } from "./ribbons.ts";
import { type Bounds, boundsOf, emptyBounds } from "./vec.ts";

const NO_POINTS = new Float32Array(0);
const NO_TINTS = new Uint8Array(0);

export class Overlays {
  /** Bounds of the drawn rays, in scene coordinates. */
  rayBounds = emptyBounds();
  private readonly rays: Ribbons;
  private readonly outlines: Ribbons;
  private readonly cast: Ribbons;
  private readonly marks: Dots;
  private readonly cloud: Dots;
  private segments: Float32Array = NO_POINTS;
  private sample: { row: Uint32Array; rgba: Uint8Array } | null = null;
  private pointsShown = false;

  constructor(shared: SharedUniforms) {
    this.rays = new Ribbons(shared, { width: 1.25, opacity: 0.65, behind: 0, wholeSpace: false });
    this.outlines = new Ribbons(shared, { width: 2, opacity: 0.95, behind: 0.4, wholeSpace: false });
    this.cast = new Ribbons(shared, { width: 3, opacity: 1, behind: 0.4, wholeSpace: true });
    this.marks = new Dots(shared, { width: 12, opacity: 1, behind: 0.55, wholeSpace: true }, true);
    this.cloud = new Dots(shared, { width: 2, opacity: 1, behind: 0, wholeSpace: false, solid: true });
  }

  clear(): void {
    this.sample = null;
    this.segments = NO_POINTS;
    this.rayBounds = emptyBounds();
    this.pointsShown = false;
    for (const lines of [this.rays, this.outlines, this.cast]) lines.set(NO_POINTS, NO_TINTS);
    for (const dots of [this.marks, this.cloud]) dots.set(NO_POINTS, NO_TINTS);
  }

  setRays(rays: Drawing["rays"], bounds: Bounds, shift: Vec3): void {
    if (!rays) return;
    const { sample, rgba, times } = rays;
    this.segments = raySegments(sample, times, bounds, shift);
    this.sample = { row: sample.row, rgba };
    this.rayBounds = boundsOf(this.segments, shift);
    this.rays.set(this.segments, rgba);
  }

  /** Draws lines around objects: the first in orange, over the others in blue. */
  setOutlines(model: SceneModel, objects: readonly number[]): void {
    const lines = objects.slice(0, MOST_OUTLINES).map((object) => outlineOf(model, object));
    const tints = lines.map((one, i) => {
      const tint = [...rgb(i === 0 ? FIRST : BEHIND), 255];
      return Array.from({ length: one.length / 6 }, () => tint).flat();
    });
    this.outlines.set(Float32Array.from(lines.reverse().flat()), Uint8Array.from(tints.reverse().flat()));
  }

  setAnswer(answer: Answer | null, bounds: Bounds, shift: Vec3): void {
    const drawn = answer && drawnAnswer(answer, bounds, shift);
    this.cast.set(drawn?.segments ?? NO_POINTS, drawn?.segmentTints ?? NO_TINTS);
    this.marks.set(drawn?.marks ?? NO_POINTS, drawn?.markTints ?? NO_TINTS);
  }

  /** Shows points with four bytes of colour each, or none. */
  setPoints(xyz: Float64Array | undefined, tints: Uint8Array | null, shift: Vec3): void {
    this.pointsShown = xyz !== undefined && tints !== null;
    if (!xyz || !tints) return;
    this.cloud.set(
      Float32Array.from(xyz, (value, i) => value - shift[i % 3]),
      tints,
    );
  }

  setPointSize(size: number): void {
    this.cloud.width = size;
  }

  drawn(scale: number): THREE.Object3D[] {
    return [this.rays, this.outlines, this.cast, this.marks].flatMap((one) => one.drawn(scale));
  }

  drawnPoints(scale: number): THREE.Object3D[] {
    return this.pointsShown ? this.cloud.drawn(scale) : [];
  }

  get bytes(): number {
    const all = [this.rays, this.outlines, this.cast, this.marks, this.cloud];
    return all.reduce((sum, one) => sum + one.bytes, 0);
  }

  /** Returns the drawn ray at a pixel, and its row of the table. */
  rayNear(
    project: (point: Vec3) => Projected,
    shift: Vec3,
    pixel: { x: number; y: number; within: number },
  ): (Near & { row: number }) | null {
    if (!this.sample) return null;
    const { row, rgba } = this.sample;
    const near = nearestLine(this.segments, (i) => rgba[4 * i + 3] > 0, project, shift, pixel);
    return near && { ...near, row: row[near.index] };
  }
}
