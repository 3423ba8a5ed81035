/** Lines of some pixels in width, and points, drawn over the shapes. */

import * as THREE from "three";
import { bytesOf, overlay, plain, type SharedUniforms } from "./program.ts";

interface Style {
  /** Pixels of the page. */
  width: number;
  opacity: number;
  /** Hidden parts show, at this opacity. */
  behind: number;
  /** Not cut by section planes. */
  wholeSpace: boolean;
  /** Hides what is behind. */
  solid?: boolean;
}

const FRONT = THREE.LessEqualDepth;
const BEHIND = THREE.GreaterDepth;

/** Lines or points with one program for what is in front of the shapes and one for what is behind. */
abstract class Overlay {
  protected readonly geometry = new THREE.BufferGeometry();
  protected count = 0;
  /** Pixels of the page. */
  width: number;
  private readonly objects: THREE.Object3D[];
  private readonly scaled: THREE.IUniform<number>[] = [];

  constructor(kind: "ribbon" | "point", shared: SharedUniforms, style: Style, defines = {}) {
    this.width = style.width;
    const size = kind === "ribbon" ? "width" : "size";
    const drawn = (opacity: number, depthFunc: THREE.DepthModes) => {
      const scaled = { value: style.width };
      this.scaled.push(scaled);
      const own = { [size]: scaled, opacity: { value: opacity }, wholeSpace: { value: style.wholeSpace } };
      const material = overlay(kind, { ...shared, ...own }, { depthFunc, defines, depthWrite: style.solid ?? false });
      return plain(
        kind === "ribbon" ? new THREE.Mesh(this.geometry, material) : new THREE.Points(this.geometry, material),
      );
    };
    this.objects = [...(style.behind > 0 ? [drawn(style.behind, BEHIND)] : []), drawn(style.opacity, FRONT)];
  }

  /** Returns what is to be drawn where a pixel of the page is `scale` pixels of the picture. */
  drawn(scale: number): THREE.Object3D[] {
    for (const uniform of this.scaled) uniform.value = this.width * scale;
    return this.count > 0 ? this.objects : [];
  }

  get bytes(): number {
    return this.count > 0 ? bytesOf([this.geometry]) : 0;
  }

  protected replace(attributes: { [name: string]: THREE.BufferAttribute }): void {
    this.geometry.dispose();
    for (const [name, attribute] of Object.entries(attributes)) this.geometry.setAttribute(name, attribute);
  }

  dispose(): void {
    this.geometry.dispose();
    for (const object of this.objects) ((object as THREE.Mesh).material as THREE.Material).dispose();
  }
}

export class Ribbons extends Overlay {
  constructor(shared: SharedUniforms, style: Style) {
    super("ribbon", shared, style);
  }

  /** Replaces the lines: six coordinates and four bytes of colour a line. */
  set(segments: Float32Array, tints: Uint8Array): void {
    this.count = segments.length / 6;
    const end = (offset: number) =>
      Float32Array.from({ length: 12 * this.count }, (_, i) => segments[6 * ((i / 12) | 0) + offset + (i % 3)]);
    const tint = Uint8Array.from({ length: 16 * this.count }, (_, i) => tints[4 * ((i / 16) | 0) + (i % 4)]);
    this.replace({
      start: new THREE.BufferAttribute(end(0), 3),
      end: new THREE.BufferAttribute(end(3), 3),
      tint: new THREE.BufferAttribute(tint, 4, true),
    });
    const index = new Uint32Array(6 * this.count);
    for (let i = 0; i < this.count; i++)
      index.set(
        [0, 1, 2, 2, 1, 3].map((k) => 4 * i + k),
        6 * i,
      );
    this.geometry.setIndex(new THREE.BufferAttribute(index, 1));
  }
}

export class Dots extends Overlay {
  constructor(shared: SharedUniforms, style: Style, marks = false) {
    super("point", shared, style, marks ? { MARKS: 1 } : {});
  }

  /** Replaces the points: three coordinates and four bytes of colour a point. */
  set(points: Float32Array, tints: Uint8Array): void {
    this.count = points.length / 3;
    this.replace({
      position: new THREE.BufferAttribute(points, 3),
      tint: new THREE.BufferAttribute(tints, 4, true),
    });
  }
}
