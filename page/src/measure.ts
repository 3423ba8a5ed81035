/** Measured points, snapped in float64 to corners, edges and faces of what a ray hits, and what is between them. */

import { cornersOf } from "./engine/boxes.ts";
import { boxOfCell, firstInCopy } from "./engine/pair.ts";
import { short } from "./format.ts";
import { transformed } from "./stage/bounds.ts";
import { type HalfSpace, nearestOnLine } from "./stage/cut.ts";
import { along, corners, cross, dot, length, sub, unit } from "./stage/vec.ts";
import type { Answer, BoxesGeometry, Geometry, Hit, MeshGeometry, Ray, SceneModel, Vec3 } from "./types.ts";

export const MOST_POINTS = 3;
const SNAP_PIXELS = 10;
/** The relative error of coordinates that were computed, such as those of IFC: 16 units in the last place. */
const ROUNDING = 2 ** -48;
/** Corners in turn of each face of a box; bit a of a corner: it is upper on axis a. */
const BOX_FACES = [1, 2, 4].flatMap((bit) => {
  const [u, v] = [1, 2, 4].filter((other) => other !== bit);
  return [0, bit].map((side) => [side, side | u, side | u | v, side | v]);
});

type Edge = [Vec3, Vec3];
type Move = (point: Vec3) => Vec3;

/** A flat face with its corners in turn, and those of its edges that are drawn. */
interface Face {
  corners: Vec3[];
  edges: Edge[];
}

/** Where the picture has a point, and what the cut leaves. */
interface Shown {
  pixelOf: (point: Vec3) => [number, number];
  spaces: readonly HalfSpace[];
}

/** Returns the point that a click measures: a near corner, else one of a near edge, else of the face; null for a miss. */
export function snappedPoint({ geometries }: SceneModel, { ray, hits: [hit] }: Answer, { pixelOf, spaces }: Shown): Vec3 | null {
  if (!hit) return null;
  const point = along(ray.origin, ray.direction, hit.t);
  const face = faceOf(geometries[hit.geometry], ray, hit, point);
  if (!face) return point;
  const [x, y] = pixelOf(point);
  const isNear = (one: Vec3) => {
    const [u, v] = pixelOf(one);
    return Math.hypot(u - x, v - y) <= SNAP_PIXELS && spaces.every((space) => dot(space.normal, sub(one, space.point)) <= 0);
  };
  const distance = (one: Vec3) => length(sub(one, point));
  const nearest = (points: Vec3[]) => points.filter(isNear).sort((a, b) => distance(a) - distance(b)).at(0);
  return nearest(face.corners) ?? nearest(face.edges.map((edge) => nearestOnEdge(edge, ray))) ?? onFace(point, face.corners);
}

function nearestOnEdge([from, to]: Edge, ray: Ray): Vec3 {
  const edge = sub(to, from);
  const share = dot(sub(nearestOnLine(from, unit(edge), ray), from), edge) / (dot(edge, edge) || 1);
  return along(from, edge, Math.min(1, Math.max(0, share)));
}

/** Returns a point with the very coordinate of a face that lies across an axis. */
function onFace(point: Vec3, [first, ...others]: Vec3[]): Vec3 {
  return point.map((value, a) => (others.every((corner) => corner[a] === first[a]) ? first[a] : value)) as Vec3;
}

/** Returns the face that a ray hits; null where it starts inside, and on planes, which have no corners. */
function faceOf(geometry: Geometry, ray: Ray, hit: Hit, point: Vec3): Face | null {
  if (geometry.type === "planes" || hit.tEnter < hit.t) return null;
  if (geometry.type === "grid") return boxFace(boxOfCell(geometry, hit.primitive), 0, point, (corner) => corner);
  if (geometry.type !== "instances") return baseFace(geometry, hit.primitive, point, (corner) => corner);
  const toCopy = (corner: Vec3) => transformed(geometry.transforms, hit.primitive, corner);
  return baseFace(geometry.base, firstInCopy(geometry, ray, hit.primitive), point, toCopy);
}

function baseFace(base: BoxesGeometry | MeshGeometry, row: number, point: Vec3, move: Move): Face {
  return base.type === "boxes" ? boxFace(base, row, point, move) : triangleFace(base, row, move);
}

/** Returns the face of a box whose plane is nearest to a point. */
function boxFace(boxes: Pick<BoxesGeometry, "lower" | "upper">, row: number, point: Vec3, move: Move): Face {
  const [lower, upper] = [boxes.lower, boxes.upper].map((rows) => [...rows.subarray(3 * row, 3 * row + 3)] as Vec3);
  const points = corners({ lower, upper }).map(move);
  const distance = ([a, b, c]: number[]) => {
    const normal = unit(cross(sub(points[b], points[a]), sub(points[c], points[a])));
    return Math.abs(dot(normal, sub(point, points[a])));
  };
  const face = BOX_FACES.reduce((best, one) => (distance(one) < distance(best) ? one : best)).map((k) => points[k]);
  return { corners: face, edges: edgesOf(face) };
}

/** Returns a triangle; the edges between those of a flat wall are not drawn. */
function triangleFace(mesh: MeshGeometry, row: number, move: Move): Face {
  const numbers = cornersOf(mesh, row);
  const points = [0, 3, 6].map((k) => numbers.slice(k, k + 3) as Vec3);
  const drawn = edgesOf(points).filter((edge) => isDrawn(mesh, edge));
  return { corners: points.map(move), edges: drawn.map(([from, to]): Edge => [move(from), move(to)]) };
}

const edgesOf = (points: Vec3[]): Edge[] => points.map((from, k) => [from, points[(k + 1) % points.length]]);

/** Returns whether an edge is among those of a mesh, whose vertices may be others at the same points. */
function isDrawn({ edges, vertices }: MeshGeometry, [a, b]: Edge): boolean {
  const isAt = (i: number, point: Vec3) => point.every((value, axis) => vertices[3 * edges[i] + axis] === value);
  for (let i = 0; i < edges.length; i += 2) {
    if ((isAt(i, a) && isAt(i + 1, b)) || (isAt(i, b) && isAt(i + 1, a))) return true;
  }
  return false;
}

/** Returns the angle at the second of three points, in degrees. */
export function angleText([from, at, to]: readonly Vec3[]): string {
  const [u, v] = [sub(from, at), sub(to, at)];
  return `${short((Math.atan2(length(cross(u, v)), dot(u, v)) * 180) / Math.PI)}°`;
}

/** Returns a length with its unit, on one line. */
export const withUnit = (value: number, unitName: string): string => `${short(value)}\u00a0${unitName}`.trim();

/** Returns the last of the measured lengths with its parts, and the angle; before there is one, what to do. */
export function measuredText(points: readonly Vec3[], unitName: string): string {
  const [from, to] = points.slice(-2);
  if (!from) return "Click two points to measure; a third gives an angle";
  if (!to) return `${from.map((value) => Number(value.toPrecision(10))).join(", ")} · click the other end`;
  // A part as small as the rounding of coordinates is none.
  const rounding = ROUNDING * Math.max(...from.map(Math.abs), ...to.map(Math.abs));
  const delta = sub(to, from).map((value) => (Math.abs(value) < rounding ? 0 : value)) as Vec3;
  const parts = delta.map((value, a) => `d${"xyz"[a]}\u00a0${withUnit(value, unitName)}`);
  const angle = points.length === MOST_POINTS ? [`angle\u00a0${angleText(points)}`] : [];
  return [`distance\u00a0${withUnit(length(delta), unitName)}`, ...parts, ...angle].join(" · ");
}
