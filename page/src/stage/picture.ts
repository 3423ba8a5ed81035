/** Draws the picture in passes and steps, as many as fit a frame, and shows it. */

import * as THREE from "three";
import type { Layer, LayerView, Part } from "./layer.ts";
import { overlay, plain, type SharedUniforms } from "./program.ts";
import type { Pass } from "./shaders.ts";

/** What a picture shows, and how well. */
export interface Plan {
  layers: readonly Layer[];
  /** Drawn among the shapes. */
  points: (scale: number) => readonly THREE.Object3D[];
  /** Drawn over the shapes: lines, points, marks; a pixel of the page is `scale` of the picture. */
  overlays: (scale: number) => readonly THREE.Object3D[];
  view: LayerView;
  width: number;
  height: number;
  scale: number;
  background: THREE.Color;
  moving: boolean;
  /** Whether what lies deeper than what is around it is darker. */
  depthCue: boolean;
  /** Pixels of the largest boxes that are points, 0 without boxes: their depths are even, also on a slope. */
  dots: number;
  /** Which passes are needed. */
  ties: boolean;
  translucent: boolean;
  edges: boolean;
  /** The most of what lies behind that translucent objects hide. */
  mostOpacity: number;
  /** Returns whether the time for shapes is over; those that are left are not drawn. */
  overdue: () => boolean;
}

/** Draws into textures; `drawing` yields after each step, so that a slow device answers in between. */
export class Picture {
  /** Draw calls of the picture that was drawn last, or is being drawn. */
  drawCalls = 0;
  private readonly renderer: THREE.WebGLRenderer;
  private readonly shared: SharedUniforms;
  /** Whether the device is so slow that each step counts. */
  private readonly slow: boolean;
  private readonly colour: THREE.WebGLRenderTarget;
  private readonly ties: THREE.WebGLRenderTarget;
  private readonly sums: THREE.WebGLRenderTarget;
  private readonly probe = new THREE.WebGLRenderTarget(1, 1);
  private readonly scene = new THREE.Scene();
  private readonly camera = new THREE.Camera();
  private readonly copyOver: THREE.Mesh;
  private readonly blendOver: THREE.Mesh;
  private readonly depthCue: THREE.Mesh;
  private readonly readDepth: THREE.Mesh;
  private readonly pixel = new Uint8Array(4);

  constructor(renderer: THREE.WebGLRenderer, shared: SharedUniforms, slow: boolean) {
    this.renderer = renderer;
    this.shared = shared;
    this.slow = slow;
    this.colour = target(true, THREE.UnsignedByteType);
    this.ties = target(true, THREE.UnsignedByteType);
    this.sums = target(false, THREE.HalfFloatType);
    this.copyOver = screen("copy", { source: { value: null } }, {});
    this.blendOver = screen("blend", { source: { value: this.sums.texture }, most: { value: 1 } }, {});
    this.depthCue = screen("cue", { ...shared, radius: { value: 1 }, dots: { value: 0 } }, { transparent: false });
    const pixel = { value: new THREE.Vector2() };
    this.readDepth = screen("depth", { source: { value: this.colour.depthTexture }, pixel }, { transparent: false });
    shared.depthMap.value = this.colour.depthTexture;
    const context = renderer.getContext();
    shared.snap.value = 0.01 + 1.2 * 2 ** -context.getParameter(context.SUBPIXEL_BITS);
    this.scene.matrixWorldAutoUpdate = false;
  }

  /** Draws; yields after each step. */
  *drawing(plan: Plan): Generator<void, void> {
    this.begin(plan);
    yield* this.pass("opaque", plan, this.colour);
    if (plan.ties) {
      this.clear(this.ties, plan, 0);
      yield* this.pass("ties", plan, this.ties);
      this.over(this.copyOver, this.ties.texture);
    }
    this.render(plan.points(plan.scale), this.colour);
    if (plan.depthCue) yield* this.drawDepthCue(plan);
    if (plan.translucent) {
      this.clear(this.sums, plan, 0);
      yield* this.pass("translucent", plan, this.sums);
      uniforms(this.blendOver).most.value = plan.mostOpacity;
      uniforms(this.blendOver).source.value = this.sums.texture;
      yield* this.overAll(this.blendOver, this.colour);
    }
    if (plan.edges) yield* this.pass("lines", plan, this.colour);
    this.render(plan.overlays(plan.scale), this.colour);
  }

  private begin(plan: Plan): void {
    this.drawCalls = 0;
    for (const one of [this.colour, this.sums]) one.scissorTest = false; // of a picture that was not finished
    if (this.colour.width !== plan.width || this.colour.height !== plan.height) {
      for (const one of [this.colour, this.ties, this.sums]) one.setSize(plan.width, plan.height);
    }
    this.shared.viewport.value.set(plan.width, plan.height);
    this.clear(this.colour, plan, 1);
  }

  private clear(into: THREE.WebGLRenderTarget, plan: Plan, opacity: 0 | 1): void {
    this.renderer.setRenderTarget(into);
    this.renderer.setClearColor(opacity === 1 ? plan.background : BLACK, opacity);
    this.renderer.clear();
  }

  private *pass(pass: Pass, plan: Plan, into: THREE.WebGLRenderTarget): Generator<void, void> {
    const parts = plan.layers.flatMap((layer) => layer.parts(pass, plan.view));
    for (const group of this.groups(parts, plan)) {
      if (plan.overdue() && !group[0].always) return;
      this.render(group.map(withMaterial), into);
      this.wait();
      yield;
    }
  }

  /** Returns what is drawn at once: on a slow device one part, but of a moving picture all that is always drawn. */
  private groups(parts: Part[], plan: Plan): Part[][] {
    if (parts.length === 0) return [];
    if (!this.slow) return [parts];
    const always = plan.moving ? parts.filter((part) => part.always) : [];
    const others = parts.filter((part) => !always.includes(part)).map((part) => [part]);
    return always.length > 0 ? [always, ...others] : others;
  }

  private render(objects: readonly THREE.Object3D[], into: THREE.WebGLRenderTarget | null): void {
    if (objects.length === 0) return;
    this.renderer.setRenderTarget(into);
    this.scene.children = [...objects];
    this.renderer.info.reset();
    this.renderer.render(this.scene, this.camera);
    this.drawCalls += this.renderer.info.render.calls;
  }

  /** The depths are those of the picture, so the shade is drawn apart and then put over it. */
  private *drawDepthCue(plan: Plan): Generator<void, void> {
    this.clear(this.sums, plan, 0);
    uniforms(this.depthCue).radius.value = CUE_RADIUS * plan.scale;
    uniforms(this.depthCue).dots.value = plan.dots;
    yield* this.overAll(this.depthCue, this.sums);
    this.over(this.copyOver, this.sums.texture);
  }

  /** Draws over all of a picture, on a slow device in strips: a click waits for a step. */
  private *overAll(mesh: THREE.Mesh, into: THREE.WebGLRenderTarget): Generator<void, void> {
    const strip = Math.ceil(into.height / (this.slow ? STRIPS : 1));
    into.scissorTest = true;
    for (let y = 0; y < into.height; y += strip) {
      into.scissor.set(0, y, into.width, strip);
      this.render([mesh], into);
      this.wait();
      yield;
    }
    into.scissorTest = false;
  }

  private over(mesh: THREE.Mesh, source: THREE.Texture): void {
    uniforms(mesh).source.value = source;
    this.render([mesh], this.colour);
  }

  /** Waits on a slow device until all is drawn, so that the time of a step is known. */
  wait(): void {
    if (this.slow) this.renderer.readRenderTargetPixels(this.colour, 0, 0, 1, 1, this.pixel);
  }

  /** Shows what is drawn. */
  show(): void {
    uniforms(this.copyOver).source.value = this.colour.texture;
    this.render([this.copyOver], null);
  }

  /** Returns the depth at a pixel of the picture, from 0 to 1 between near and far; null where nothing is. */
  depthAt(x: number, y: number): number | null {
    const column = Math.floor(x);
    const row = Math.floor(this.colour.height - y);
    if (column < 0 || row < 0 || column >= this.colour.width || row >= this.colour.height) return null;
    (uniforms(this.readDepth).pixel.value as THREE.Vector2).set(column, row);
    const calls = this.drawCalls;
    this.render([this.readDepth], this.probe);
    this.drawCalls = calls;
    this.renderer.readRenderTargetPixels(this.probe, 0, 0, 1, 1, this.pixel);
    const [r, g, b, some] = this.pixel;
    return some ? r / 255 + g / 65025 + b / 16581375 : null;
  }

  /** Returns the picture's bytes, the upper row first. */
  pixels(): ImageData {
    const { width, height } = this.colour;
    const bytes = new Uint8Array(4 * width * height);
    this.renderer.readRenderTargetPixels(this.colour, 0, 0, width, height, bytes);
    const image = new ImageData(width, height);
    for (let y = 0; y < height; y++) {
      image.data.set(bytes.subarray(4 * width * (height - 1 - y), 4 * width * (height - y)), 4 * width * y);
    }
    return image;
  }

  get size(): { width: number; height: number } {
    return { width: this.colour.width, height: this.colour.height };
  }
}

/** Pixels of the page. */
const CUE_RADIUS = 2;
/** Steps in which a slow device draws over all of a picture. */
const STRIPS = 6;
const BLACK = new THREE.Color(0);

function withMaterial({ object, material }: Part): THREE.Object3D {
  object.material = material;
  return object;
}

function uniforms(mesh: THREE.Mesh): { [name: string]: THREE.IUniform } {
  return (mesh.material as THREE.ShaderMaterial).uniforms;
}

function target(depth: boolean, type: THREE.TextureDataType): THREE.WebGLRenderTarget {
  const made = new THREE.WebGLRenderTarget(1, 1, { type, depthBuffer: depth });
  made.texture.generateMipmaps = false;
  if (depth) made.depthTexture = new THREE.DepthTexture(1, 1, THREE.UnsignedIntType);
  return made;
}

function screen(
  shader: "copy" | "blend" | "cue" | "depth",
  own: { [name: string]: THREE.IUniform },
  state: THREE.ShaderMaterialParameters,
): THREE.Mesh {
  const geometry = new THREE.BufferGeometry();
  geometry.setDrawRange(0, 3);
  return plain(new THREE.Mesh(geometry, overlay(shader, own, { depthTest: false, ...state })));
}
