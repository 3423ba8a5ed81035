/** The drawing of a scene: shapes, rays, points, cut and camera, as the panels use it. */

import * as THREE from "three";
import { rgb } from "../look.ts";
import type {
  CameraState,
  CutPlane,
  DrawnStats,
  Drawing,
  LegendEntry,
  Ray,
  SceneModel,
  StageEvents,
  StandardView,
  Vec3,
} from "../types.ts";
import { middleOfPoints } from "./bounds.ts";
import {
  basisOf,
  consistent,
  depthRange,
  fit,
  type Insets,
  pixelRay,
  projector,
  standardDirection,
  type Viewport,
} from "./camera.ts";
import { Controls } from "./controls.ts";
import { halfSpaces, limitRay } from "./cut.ts";
import { flatCanvas, nameOf, rendererOf } from "./device.ts";
import { Frames, type Quality } from "./frames.ts";
import { drawFurniture, type Furniture } from "./furniture.ts";
import { GridLayer } from "./grid.ts";
import { drawnReach, limitsOf, objectBounds, type Reach, reachOf } from "./hull.ts";
import type { Layer, LayerView } from "./layer.ts";
import { layersOf } from "./layers.ts";
import { composeLook, type Composed, lookTable } from "./looks.ts";
import { Overlays } from "./overlays.ts";
import { Picture, type Plan } from "./picture.ts";
import { boundsWithPlanes } from "./planes.ts";
import { composePicture } from "./png.ts";
import { Pointing, type PointingHost } from "./pointing.ts";
import { filledTable, sharedUniforms } from "./program.ts";
import { distanceOfDepth, moved, projectionOf, relativeTo, sidesOf } from "./projection.ts";
import {
  add,
  along,
  type Bounds,
  boundsOf,
  corners,
  diagonal,
  dot,
  emptyBounds,
  include,
  isEmpty,
  middle,
  scale,
  sub,
} from "./vec.ts";
import { writeCamera, writeCut } from "./writing.ts";

const LIGHT = { background: "#f5f6f8", ink: "#1f2937" };
const DARK = { background: "#15181d", ink: "#05070a" };
/** A finer scene than this part of its size is not looked at. */
const SMALLEST = 1e-6;
/** What is fitted is shown with some of what is around it, and at least this part of the scene's size. */
const ROOM = 1.7;
const LEAST_FIT = 1e-3;
/** The opacity of what is around the chosen objects, and the most that it hides of them. */
const FADED = { opacity: 26, most: 0.8 };
const MOST_PIXELS = 2;
/** Software draws what coincides twice while the camera moves up to so large a scene. */
const MOST_TIES_MOVING = 30_000;
/** The bounds of nothing. */
const CUBE: Bounds = { lower: [-1, -1, -1], upper: [1, 1, 1] };

const FIRST_CAMERA: CameraState = { eye: [3, -4, 2.6], target: [0, 0, 0], up: "z", orthographic: false, height: 1, fov: 45 };
const NOTHING: Drawing = {
  look: null,
  edges: true,
  cut: [],
  faded: false,
  highlight: [],
  measure: null,
  answer: null,
  rays: null,
  points: null,
  pointSize: 2,
  dark: false,
};

/** What panels and tests use of a stage. */
export type StageApi = Pick<Stage, keyof Stage>;

export class Stage {
  private readonly canvas: HTMLCanvasElement;
  private readonly flat: HTMLCanvasElement;
  private readonly renderer: THREE.WebGLRenderer;
  private readonly rendererName: string;
  /** Whether the processor draws. */
  private readonly slow: boolean;
  private readonly shared = sharedUniforms();
  private readonly picture: Picture;
  private readonly frames: Frames;
  private readonly controls: Controls;
  private readonly overlays: Overlays;

  private model: SceneModel | null = null;
  private layers: Layer[] = [];
  private composed: Composed = { translucent: false, opaque: true };
  /** Whether the file has translucent colours. */
  private hasGlass = false;
  private table: ReturnType<typeof lookTable> | null = null;
  private state: CameraState = FIRST_CAMERA;
  /** How the camera is fitted to the panels; null once it is moved otherwise. */
  private fitting: (() => CameraState) | null = null;
  private insets: Insets = { top: 0, right: 0, bottom: 0, left: 0 };
  private readonly drawing: Drawing = { ...NOTHING };
  private readonly compose = () => this.composeAll();
  /** What a change of the drawing updates, once for several changes. */
  private readonly updates: { [K in keyof Drawing]?: () => void } = {
    look: this.compose,
    faded: this.compose,
    highlight: () => this.drawHighlight(),
    cut: () => this.updateGrids(),
    answer: () => this.overlays.setAnswer(this.drawing.answer, this.bounds, this.shift),
    rays: () => this.overlays.setRays(this.drawing.rays, this.bounds, this.shift),
    points: () => this.overlays.setPoints(this.model?.points?.xyz, this.drawing.points, this.shift),
    pointSize: () => this.overlays.setPointSize(this.drawing.pointSize),
  };
  private bounds: Bounds = CUBE;
  private events: StageEvents | null = null;

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
    this.flat = flatCanvas(canvas);
    this.renderer = rendererOf(canvas);
    this.rendererName = nameOf(this.renderer.getContext());
    this.slow = /swiftshader|llvmpipe|software|basic render/i.test(this.rendererName);
    this.picture = new Picture(this.renderer, this.shared, this.slow);
    const host = { plan: (q: Quality, o: () => boolean) => this.plan(q, o), shown: () => this.drawFlat() };
    this.frames = new Frames(this.picture, host, this.slow);
    this.overlays = new Overlays(this.shared);
    this.controls = new Controls(canvas, new Pointing(this.pointingHost()));
    // A new size empties the canvas, so something is drawn at once.
    new ResizeObserver(() => this.frames.invalidate(true)).observe(canvas);
    canvas.addEventListener("webglcontextrestored", () => this.redraw());
  }

  /** Whether only the shade of depths shows shapes apart: it is drawn while the camera moves, too. */
  private get isUnlabelled(): boolean {
    return this.model !== null && (this.model.points !== null || this.model.labels.length === 0);
  }

  private get hasBoxes(): boolean {
    return this.model?.geometries.some((one) => one.type === "grid" || (one.type === "instances" ? one.base : one).type === "boxes") ?? false;
  }

  /** Draws a scene; the camera is not fitted to it yet. */
  load(model: SceneModel): void {
    const again = this.model !== null && sameScene(this.model, model);
    this.clearScene();
    this.model = model;
    this.table = lookTable(model.objects);
    this.shared.look.value = this.table.texture;
    this.shared.palette.value = filledTable(model.palette ?? new Uint8Array(4));
    this.hasGlass = model.palette?.some((byte, i) => i > 3 && i % 4 === 3 && byte < 255) ?? false;
    this.shared.orderScale.value = 1 / (model.objects + 1);
    this.bounds = sceneBounds(model);
    this.layers = layersOf(model, this.bounds, this.shared);
    this.compose();
    this.fitting = null;
    if (!again) this.state = { ...FIRST_CAMERA, up: model.up, orthographic: this.isFlat };
    this.redraw();
  }

  private clearScene(): void {
    this.layers.forEach((layer) => layer.dispose());
    this.table?.texture.dispose();
    this.shared.palette.value?.dispose();
    this.layers = [];
    Object.assign(this.drawing, NOTHING);
    this.overlays.clear();
  }

  /** Returns the bounds of all that is drawn. */
  private drawnBounds(): Bounds {
    const { rayBounds } = this.overlays;
    if (isEmpty(rayBounds)) return this.bounds;
    const bounds = emptyBounds();
    [...corners(this.bounds), ...corners(rayBounds)].forEach((corner) => include(bounds, ...corner));
    return bounds;
  }

  private get primitives(): number {
    return this.model?.geometries.reduce((sum, geometry) => sum + geometry.primitives, 0) ?? 0;
  }

  private get shift(): Vec3 {
    return this.model?.shift ?? [0, 0, 0];
  }

  /** Draw these parts of the state from now on. */
  draw(changes: Partial<Drawing>): void {
    Object.assign(this.drawing, changes);
    const acts = new Set((Object.keys(changes) as (keyof Drawing)[]).map((key) => this.updates[key]));
    for (const act of acts) act?.();
    this.redraw();
  }

  /** Writes the look of all objects with what is highlighted and faded, and chooses the cells of grids. */
  private composeAll(): void {
    if (!this.table || !this.model) return;
    const { faded, highlight, look } = this.drawing;
    const opacity = faded ? FADED.opacity : null;
    this.composed = composeLook(this.table.data, look, highlight, opacity, this.model.objects);
    if (look?.byFile && this.hasGlass) this.composed.translucent = true;
    this.shared.byFile.value = look?.byFile ?? false;
    this.shared.exceptObject.value = highlight[0] ?? -1;
    this.table.texture.needsUpdate = true;
    this.updateGrids();
  }

  private drawHighlight(): void {
    this.compose();
    if (this.model) this.overlays.setOutlines(this.model, this.drawing.highlight);
  }

  private updateGrids(): void {
    const spaces = halfSpaces(this.drawing.cut);
    for (const layer of this.layers)
      if (layer instanceof GridLayer && this.table) layer.update(this.table.data, spaces);
  }

  /** Move the camera to what `fit` gives, and again when panels cover more or less, until it is moved otherwise. */
  private fitted(fitting: () => CameraState): void {
    this.moveTo(fitting());
    this.fitting = fitting;
  }

  fitAll(): void {
    this.standardView(this.isFlat ? "top" : "iso");
  }

  fitObjects(objects: number[]): void {
    if (!this.model) return;
    const bounds = objectBounds(this.model, objects);
    if (isEmpty(bounds)) return this.fitAll();
    const least = LEAST_FIT * diagonal(this.bounds);
    const half = scale(sub(bounds.upper, bounds.lower), ROOM / 2).map((size) => Math.max(size, least)) as Vec3;
    const points = corners({ lower: sub(middle(bounds), half), upper: add(middle(bounds), half) });
    const toEye = this.toEye();
    this.fitted(() => fit(this.state, this.viewport, reachOf(points), toEye));
  }

  private toEye(): Vec3 {
    return scale(basisOf(this.state).forward, -1);
  }

  standardView(view: StandardView): void {
    this.fitted(() => fit(this.state, this.viewport, this.reach(), standardDirection(view, this.state.up)));
  }

  /** Returns how far what is drawn reaches; of a cloud of points its middle, of nothing the bounds. */
  private reach(): Reach {
    const points = this.model?.points?.xyz;
    if (points && points.length > 0) return reachOf(corners(middleOfPoints(points)));
    const { cut, look } = this.drawing;
    const limits = limitsOf(this.bounds, cut);
    const all = reachOf(corners(this.bounds));
    const drawn = this.model && drawnReach(this.model, (object) => look?.rgba[4 * object + 3] !== 0, limits);
    return (directions) => {
      const ends = drawn?.(directions);
      return ends && Number.isFinite(ends[0][0]) ? ends : all(directions);
    };
  }

  /** Whether all of the scene is at one z: it is looked at from above. */
  private get isFlat(): boolean {
    const [low, high] = this.model?.bounds ?? [CUBE.lower, CUBE.upper];
    return low[2] === high[2] && low[0] < high[0] && low[1] < high[1];
  }

  setInsets(insets: Insets): void {
    const changed = JSON.stringify(insets) !== JSON.stringify(this.insets);
    this.insets = { ...insets };
    if (changed && this.fitting) this.fitted(this.fitting);
    this.redraw();
  }

  camera(): CameraState {
    return structuredClone(this.state);
  }

  setCamera(camera: CameraState): void {
    this.fitting = null;
    this.state = consistent(structuredClone(camera));
    this.redraw();
  }

  private moveTo(camera: CameraState, moving = false): void {
    this.fitting = null;
    this.state = camera;
    this.frames.invalidate(moving);
    this.events?.cameraChanged(this.camera());
  }

  rayOf(x: number, y: number): Ray | null {
    const box = this.canvas.getBoundingClientRect();
    return this.cutRay(x - box.left, y - box.top);
  }

  /** The pixel of the canvas at which a point is drawn; NaN behind the eye. */
  pixelOf(point: Vec3): [number, number] {
    const { x, y, depth } = projector(this.state, this.viewport)(point);
    return this.state.orthographic || depth > 0 ? [x, y] : [NaN, NaN];
  }

  private cutRay(x: number, y: number): Ray | null {
    return limitRay(this.fullRay(x, y), halfSpaces(this.drawing.cut));
  }

  /** Returns the ray of a pixel of the canvas, as if nothing was cut. */
  private fullRay(x: number, y: number): Ray {
    return pixelRay(this.state, this.viewport, x, y, this.drawnBounds());
  }

  private get viewport(): Viewport {
    return { width: this.canvas.clientWidth || 1, height: this.canvas.clientHeight || 1, insets: this.insets };
  }

  async png(legend: LegendEntry[], title: string, scale: number): Promise<Blob> {
    const { width, height } = this.viewport;
    const most = this.renderer.capabilities.maxTextureSize / Math.max(width, height);
    this.frames.drawNow(Math.min(scale, most) / this.density());
    const credit = this.model?.credit ?? "";
    return composePicture(this.picture.pixels(), this.furniture(), { legend, title, credit });
  }

  stats(): DrawnStats {
    const layers = this.layers.reduce((sum, layer) => sum + layer.bytes, 0);
    return {
      drawCalls: this.picture.drawCalls,
      bufferBytes: layers + this.overlays.bytes + (this.table?.data.byteLength ?? 0),
      frames: this.frames.frames,
      complete: this.frames.complete,
      renderer: this.rendererName,
    };
  }

  settled(): Promise<void> {
    return this.frames.settled();
  }

  on(events: StageEvents): void {
    this.events = events;
  }

  private redraw(): void {
    this.frames.invalidate(this.controls?.active ?? false);
  }

  // ---- drawing

  /** Pixels of the screen for one of the page, 2 at most. */
  private density(): number {
    return Math.min(devicePixelRatio || 1, MOST_PIXELS);
  }

  private plan(quality: Quality, overdue: () => boolean): Plan {
    this.resize();
    const pixelScale = this.density() * quality.scale;
    const view = this.viewport;
    const theme = this.drawing.dark ? DARK : LIGHT;
    const moving = quality.kind === "moving";
    this.shared.edges.value = this.drawing.edges;
    this.shared.ink.value.set(...(rgb(theme.ink).map((byte) => byte / 255) as Vec3));
    return {
      layers: this.layers,
      points: (pixels) => this.overlays.drawnPoints(pixels),
      overlays: (pixels) => this.overlays.drawn(pixels),
      depthCue: quality.depthCue && (this.isUnlabelled || !(moving || this.slow)),
      dots: this.hasBoxes ? quality.dotsBelow * this.density() : 0,
      view: this.prepareView(view, pixelScale, quality),
      width: Math.max(1, Math.round(view.width * pixelScale)),
      height: Math.max(1, Math.round(view.height * pixelScale)),
      scale: pixelScale,
      background: new THREE.Color().setStyle(theme.background, THREE.LinearSRGBColorSpace),
      moving,
      ties: this.composed.opaque && !(moving && this.slow && this.primitives > MOST_TIES_MOVING),
      translucent: this.composed.translucent,
      edges: this.drawing.edges,
      mostOpacity: this.drawing.faded ? FADED.most : 1,
      overdue,
    };
  }

  private resize(): void {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const density = this.density();
    const size = this.renderer.getSize(new THREE.Vector2());
    if (size.x === width && size.y === height && this.renderer.getPixelRatio() === density) return;
    this.renderer.setPixelRatio(density);
    this.renderer.setSize(width, height, false);
  }

  /** Writes the camera for the programs; returns it for the choice of parts. */
  private prepareView(view: Viewport, pixelScale: number, quality: Quality): LayerView {
    const camera = relativeTo(this.state, this.shift);
    const projection = projectionOf(camera, view, this.depths());
    const pixels = projection.pixels * pixelScale;
    const spaces = halfSpaces(this.drawing.cut);
    writeCamera(this.shared, camera, projection, pixels);
    writeCut(this.shared, spaces, this.state.eye);
    return {
      eye: camera.eye,
      forward: projection.basis.forward,
      orthographic: camera.orthographic,
      pixels,
      dotsBelow: quality.dotsBelow * this.density(),
      mostBoxes: quality.mostBoxes,
      choose: this.slow,
      look: this.table?.data ?? new Uint8Array(0),
      stride: quality.stride,
      cut: spaces.length > 0,
      sides: sidesOf(camera, view),
    };
  }

  private depths(): { near: number; far: number } {
    const camera = relativeTo(this.state, this.shift);
    return depthRange(camera, moved(this.drawnBounds(), scale(this.shift, -1)));
  }

  private drawFlat(): void {
    const view = this.viewport;
    const density = this.density();
    const [width, height] = [Math.round(view.width * density), Math.round(view.height * density)];
    if (this.flat.width !== width || this.flat.height !== height) Object.assign(this.flat, { width, height });
    const context = this.flat.getContext("2d")!;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, view.width, view.height);
    drawFurniture(context, this.furniture());
  }

  private furniture(): Furniture {
    const { state: camera, viewport: view, bounds } = this;
    const { cut, dark, measure } = this.drawing;
    return { camera, view, bounds, cut, measure: measure ?? [], dark, unit: this.model?.unit ?? "" };
  }

  // ---- pointers

  private pointingHost(): PointingHost {
    const stage = this;
    return {
      get camera() {
        return stage.state;
      },
      get viewport() {
        return stage.viewport;
      },
      get cut() {
        return stage.drawing.cut;
      },
      get smallest() {
        return SMALLEST * diagonal(stage.bounds);
      },
      fullRay: (x, y) => this.fullRay(x, y),
      pointAt: (x, y) => this.pointAt(x, y),
      // Measured points are on objects, also where a ray is drawn.
      rayNear: (x, y, within) =>
        this.drawing.measure ? null : this.overlays.rayNear(projector(this.state, this.viewport), this.shift, { x, y, within }),
      moveTo: (camera) => this.moveTo(camera, true),
      moveCut: (planes) => this.moveCut(planes),
      rest: () => this.frames.invalidate(false),
      picked: (x, y, add) => this.picked(x, y, add),
      pickedRow: (row) => this.events?.pickRow(row),
    };
  }

  private picked(x: number, y: number, add: boolean): void {
    const ray = this.cutRay(x, y);
    if (ray) this.events?.pick(ray, { add });
  }

  private moveCut(planes: CutPlane[]): void {
    this.drawing.cut = planes;
    this.updateGrids();
    this.frames.invalidate(true);
    this.events?.cutChanged(structuredClone(planes));
  }

  /** Returns the point of the shapes at a pixel of the canvas, as they are drawn; null where none is. */
  private pointAt(x: number, y: number): Vec3 | null {
    const pixels = this.picture.size.width / this.viewport.width;
    const depth = this.picture.depthAt(x * pixels, y * pixels);
    if (depth === null) return null;
    const distance = distanceOfDepth(depth, this.depths(), this.state.orthographic);
    const ray = this.fullRay(x, y);
    const { forward } = basisOf(this.state);
    const start = dot(sub(ray.origin, this.state.eye), forward);
    return along(ray.origin, ray.direction, (distance - start) / dot(ray.direction, forward));
  }
}

/** Returns the bounds of a scene, of its points and of planes near it; a cube of 2 where it has none. */
function sceneBounds(model: SceneModel): Bounds {
  const bounds = boundsOf(model.points?.xyz ?? new Float64Array(0), [0, 0, 0]);
  model.bounds.forEach((corner) => include(bounds, ...corner));
  if (isEmpty(bounds)) return CUBE;
  // A scene of one point has a size, too, so that an eye can be in front of it.
  if (diagonal(bounds) === 0) return { lower: add(bounds.lower, CUBE.lower), upper: add(bounds.upper, CUBE.upper) };
  return boundsWithPlanes(bounds, model.geometries);
}

/** Returns whether a scene came again, such as after a lost connection: the view stays. */
function sameScene(a: SceneModel, b: SceneModel): boolean {
  return a.name === b.name && a.objects === b.objects && JSON.stringify(a.bounds) === JSON.stringify(b.bounds);
}
