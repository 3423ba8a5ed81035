/** What is drawn on the picture in two dimensions: scale bar, axes, outlines and handles of section planes. */

import { angleText, withUnit } from "../measure.ts";
import type { Axis, CameraState, CutPlane, Vec3 } from "../types.ts";
import { basisOf, freeRectangle, type Projected, projector, tangent, type Viewport, distanceOf } from "./camera.ts";
import { halfSpace, planeInBounds } from "./cut.ts";
import { limitsOf } from "./hull.ts";
import { along, AXES, axisVector, type Bounds, diagonal, dot, length, sub, unit } from "./vec.ts";

const AXIS_COLOURS: Record<Axis, string> = { x: "#d1495b", y: "#3a9d5d", z: "#3b6fd4" };
const CUT_COLOUR = "#c2410c";
const MEASURE_COLOUR = "#c026d3";
const FONT = "12px system-ui, sans-serif";
const ARM = 26;
/** How far the text of an angle is below its point, so that those of lengths have their room. */
const ANGLE_BELOW = 30;
/** The least cosine between the normal of a plane and the line of sight at which its outline is not drawn. */
const FACING = 0.9999;

export interface Furniture {
  camera: CameraState;
  view: Viewport;
  bounds: Bounds;
  cut: readonly CutPlane[];
  /** Points that are measured. */
  measure: readonly Vec3[];
  dark: boolean;
  /** Of lengths: "m", or empty if it is unknown. */
  unit: string;
}

/** Draws all of it, in pixels of the page. */
export function drawFurniture(context: CanvasRenderingContext2D, what: Furniture): void {
  context.font = FONT;
  context.lineJoin = "round";
  for (const plane of what.cut) if (plane.on) drawPlane(context, what, plane);
  drawScaleBar(context, what);
  drawMeasured(context, what);
  drawAxes(context, what);
}

/** Returns 1, 2 or 5 times a power of ten, at most `length`. */
export function roundLength(length: number): number {
  const power = 10 ** Math.floor(Math.log10(length));
  return [5, 2, 1].map((k) => k * power).find((value) => value <= length * (1 + 1e-12)) ?? power;
}

/** Returns a length with its unit, of metres the one in which it is short to read; a number where it is unknown. */
export function lengthText(length: number, unit: string): string {
  if (unit !== "m") return `${Number(length.toPrecision(3))} ${unit}`.trim();
  const units: [number, string][] = [
    [1e3, "km"],
    [1, "m"],
    [1e-2, "cm"],
    [1e-3, "mm"],
  ];
  const [size, name] = units.find(([least]) => length >= least * (1 - 1e-12)) ?? [1e-6, "µm"];
  return `${Number((length / size).toPrecision(3))} ${name}`;
}

/** Returns the length of the scale bar in scene units, and in pixels. */
export function scaleBar(camera: CameraState, view: Viewport, most: number): { length: number; pixels: number } {
  const height = camera.orthographic ? camera.height : 2 * tangent(camera) * distanceOf(camera);
  const perPixel = height / view.height;
  const length = roundLength(most * perPixel);
  return { length, pixels: length / perPixel };
}

/** Colours of lines and texts, and of the rim that shows them on any colour. */
const inks = (dark: boolean): [string, string] => (dark ? ["#e5e7eb", "#15181d"] : ["#1f2937", "#f5f6f8"]);

/** Draws the lines between measured points with their lengths, and the angle between two. */
function drawMeasured(context: CanvasRenderingContext2D, what: Furniture): void {
  const { camera, view, bounds, measure, dark, unit } = what;
  const least = camera.orthographic ? -Infinity : 1e-6 * diagonal(bounds);
  const [ink, halo] = inks(dark);
  const ends = measure.map(projector(camera, view));
  const lines = ends.slice(1).map((to, k) => ({ from: ends[k], to, size: length(sub(measure[k + 1], measure[k])) }));
  const shown = lines.filter(({ from, to }) => Math.min(from.depth, to.depth) > least);
  for (const { from, to } of shown) {
    traceLine(context, from, to);
    strokeTwice(context, MEASURE_COLOUR, halo);
  }
  for (const end of ends) if (end.depth > least) disc(context, end, 4, MEASURE_COLOUR, halo);
  context.textAlign = "center";
  context.textBaseline = "bottom";
  const write = (text: string, x: number, y: number) => haloText(context, text, [x, y - 6], [ink, halo]);
  for (const { from, to, size } of shown) write(withUnit(size, unit), (from.x + to.x) / 2, (from.y + to.y) / 2);
  if (shown.length === 2) write(angleText(measure), ends[1].x, ends[1].y + ANGLE_BELOW);
}

function haloText(context: CanvasRenderingContext2D, text: string, [x, y]: [number, number], [ink, halo]: [string, string]): void {
  context.strokeStyle = halo;
  context.lineWidth = 3;
  context.strokeText(text, x, y);
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

function drawScaleBar(context: CanvasRenderingContext2D, { camera, view, dark, unit }: Furniture): void {
  const free = freeRectangle(view);
  const { length, pixels } = scaleBar(camera, view, Math.min(140, free.width / 3));
  if (!Number.isFinite(pixels)) return;
  const right = free.x + free.width - 16;
  const bottom = free.y + free.height - 16;
  const [ink, halo] = inks(dark);
  trace(context, [
    [right - pixels, bottom - 5],
    [right - pixels, bottom],
    [right, bottom],
    [right, bottom - 5],
  ]);
  strokeTwice(context, ink, halo);
  context.textAlign = "center";
  context.textBaseline = "bottom";
  haloText(context, lengthText(length, unit), [right - pixels / 2, bottom - 4], [ink, halo]);
}

/** Draws a path with a rim, so that it shows on any colour. */
function strokeTwice(context: CanvasRenderingContext2D, ink: string, halo: string): void {
  for (const [colour, width] of [[halo, 4], [ink, 1.5]] as const) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
}

function drawAxes(context: CanvasRenderingContext2D, { camera, view }: Furniture): void {
  const free = freeRectangle(view);
  const basis = basisOf(camera);
  const [x, y] = [free.x + 16 + ARM, free.y + free.height - 16 - ARM];
  const arms = AXES.map((axis) => {
    const direction = axisVector(axis);
    return {
      axis,
      right: dot(direction, basis.right),
      up: dot(direction, basis.up),
      in: dot(direction, basis.forward),
    };
  });
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = 2;
  for (const arm of arms.sort((a, b) => b.in - a.in)) {
    context.strokeStyle = context.fillStyle = AXIS_COLOURS[arm.axis];
    trace(context, [
      [x, y],
      [x + ARM * 0.75 * arm.right, y - ARM * 0.75 * arm.up],
    ]);
    context.stroke();
    context.fillText(arm.axis, x + ARM * arm.right, y - ARM * arm.up);
  }
}

function trace(context: CanvasRenderingContext2D, points: readonly (readonly [number, number])[]): void {
  context.beginPath();
  points.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
}

const traceLine = (context: CanvasRenderingContext2D, from: Projected, to: Projected) =>
  trace(context, [[from.x, from.y], [to.x, to.y]]);

/** The places of the two handles of a free plane on the page: one moves it, one turns it. */
export interface Handles {
  move: Projected;
  turn: Projected;
  /** The length of the arrow between them, in scene units. */
  arm: number;
}

/** Returns the handles of a free plane: its arrow has 70 pixels where its point is. */
export function handlesOf(camera: CameraState, view: Viewport, plane: CutPlane): Handles {
  const project = projector(camera, view);
  const point = plane.point ?? [0, 0, 0];
  const move = project(point);
  const height = camera.orthographic ? camera.height : 2 * tangent(camera) * Math.max(move.depth, 0);
  const arm = (70 * height) / view.height;
  return { move, turn: project(along(point, unit(plane.normal ?? [0, 0, 1]), arm)), arm };
}

function drawPlane(context: CanvasRenderingContext2D, what: Furniture, plane: CutPlane): void {
  const space = halfSpace(plane);
  // The outline of a floor plan would only frame it.
  if (what.camera.orthographic && Math.abs(dot(space.normal, basisOf(what.camera).forward)) > FACING) return;
  const polygon = planeInBounds(space, limitsOf(what.bounds, what.cut));
  context.strokeStyle = CUT_COLOUR;
  context.lineWidth = 1.25;
  context.setLineDash([6, 4]);
  tracePolygon(context, what, polygon);
  context.stroke();
  context.setLineDash([]);
  if (plane.axis === "free") drawHandles(context, what, plane);
}

function tracePolygon(context: CanvasRenderingContext2D, { camera, view, bounds }: Furniture, polygon: Vec3[]): void {
  const project = projector(camera, view);
  const least = camera.orthographic ? -Infinity : 1e-3 * diagonal(bounds);
  context.beginPath();
  polygon.forEach((point, i) => {
    const [from, to] = [project(point), project(polygon[(i + 1) % polygon.length])];
    if (from.depth < least || to.depth < least) return;
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
  });
}

function drawHandles(context: CanvasRenderingContext2D, { camera, view }: Furniture, plane: CutPlane): void {
  const { move, turn } = handlesOf(camera, view, plane);
  if (!camera.orthographic && move.depth <= 0) return;
  context.lineWidth = 2;
  traceLine(context, move, turn);
  context.stroke();
  disc(context, move, 8, CUT_COLOUR, "#ffffff");
  disc(context, turn, 6, "#ffffff", CUT_COLOUR);
}

function disc(context: CanvasRenderingContext2D, at: Projected, radius: number, fill: string, rim: string): void {
  context.beginPath();
  context.arc(at.x, at.y, radius, 0, 2 * Math.PI);
  context.fillStyle = fill;
  context.fill();
  context.strokeStyle = rim;
  context.stroke();
}
