/** Points for measuring, snapped in float64 to corners, edges and faces of what a ray hits, and what they measure. */

import { cornersOf } from "./engine/boxes.ts";
import { boxOfCell, firstInCopy } from "./engine/pair.ts";
import { short } from "./format.ts";
import { transformed } from "./stage/bounds.ts";
import { type HalfSpace, nearestOnLine } from "./stage/cut.ts";
import { BOX_EDGES } from "./stage/grid.ts";
import { along, cross, dot, length, sub, unit } from "./stage/vec.ts";
import type { Answer, BoxesGeometry, Geometry, Hit, MeshGeometry, Ray, SceneModel, Vec3 } from "./types.ts";

type Segment = [Vec3, Vec3];

/** A flat face with its corners, and those of its edges that are drawn. */
interface Face {
  corners: Vec3[];
  edges: Segment[];
}

export const MOST_POINTS = 3;
const SNAP_PIXELS = 10;

/** Where the picture has a point, and what the cut leaves. */
export interface Shown {
  pixelOf: (point: Vec3) => [number, number];
  spaces: readonly HalfSpace[];
}

/** Returns the point that a click measures: a corner or an edge within ten pixels, else the point of the face; null for a miss. */
export function snappedPoint(model: SceneModel, { ray, hits }: Answer, { pixelOf, spaces }: Shown): Vec3 | null {
  const hit = hits.at(0);
  if (!hit) return null;
  const point = along(ray.origin, ray.direction, hit.t);
  const [x, y] = pixelOf(point);
  const isSnapped = (one: Vec3) => {
    const [u, v] = pixelOf(one);
    return Math.hypot(u - x, v - y) <= SNAP_PIXELS && spaces.every(({ normal, point: on }) => dot(normal, sub(one, on)) <= 0);
  };
  const nearest = (points: Vec3[]) => {
    const distance = (one: Vec3) => length(sub(one, point));
    return points.filter(isSnapped).sort((a, b) => distance(a) - distance(b)).at(0);
  };
  const face = faceOf(model.geometries[hit.geometry], ray, hit, point);
  if (!face) return point;
  return nearest(face.corners) ?? nearest(face.edges.map((edge) => nearestOnEdge(edge, ray))) ?? onFace(point, face.corners);
}

/** Returns the point of a face's plane: where the face lies across an axis, exactly. */
function onFace(point: Vec3, [first, ...others]: Vec3[]): Vec3 {
  return point.map((value, a) => (others.every((corner) => corner[a] === first[a]) ? first[a] : value)) as Vec3;
}

function nearestOnEdge([from, to]: Segment, ray: Ray): Vec3 {
  const edge = sub(to, from);
  const share = dot(sub(nearestOnLine(from, unit(edge), ray), from), edge) / (dot(edge, edge) || 1);
  return along(from, edge, Math.min(1, Math.max(0, share)));
}

/** Returns the face that a ray hits; null where it starts inside, on no face, and on planes, which have no corners. */
function faceOf(geometry: Geometry, ray: Ray, hit: Hit, point: Vec3): Face | null {
  if (geometry.type === "planes" || hit.tEnter < hit.t) return null;
  if (geometry.type === "grid") return boxFace(boxOfCell(geometry, hit.primitive), 0, point);
  if (geometry.type !== "instances") return baseFace(geometry, hit.primitive, point);
  const { base, transforms } = geometry;
  const move = (one: Vec3) => transformed(transforms, hit.primitive, one);
  return baseFace(base, firstInCopy(geometry, ray, hit.primitive), point, move);
}

function baseFace(base: BoxesGeometry | MeshGeometry, row: number, point: Vec3, move = (one: Vec3) => one): Face {
  return base.type === "boxes" ? boxFace(base, row, point, move) : triangleFace(base, row, move);
}

/** Returns the face of a box whose plane is nearest to a point. */
function boxFace({ lower, upper }: Pick<BoxesGeometry, "lower" | "upper">, row: number, point: Vec3, move = (one: Vec3) => one): Face {
  const ends = [lower.subarray(3 * row), upper.subarray(3 * row)];
  const corners = Array.from({ length: 8 }, (_, k) => move([ends[k & 1][0], ends[(k >> 1) & 1][1], ends[k >> 2][2]]));
  const faces = [1, 2, 4].flatMap((bit) => [0, bit].map((side) => [0, 1, 2, 3, 4, 5, 6, 7].filter((k) => (k & bit) === side)));
  const distance = ([a, b, c]: number[]) => {
    const normal = unit(cross(sub(corners[b], corners[a]), sub(corners[c], corners[a])));
    return Math.abs(dot(normal, sub(point, corners[a])));
  };
  const face = faces.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  const isOnFace = (_: number, i: number) => face.includes(BOX_EDGES[2 * i]) && face.includes(BOX_EDGES[2 * i + 1]);
  const edges = Array.from({ length: 12 }, (_, i) => i).filter(isOnFace);
  return {
    corners: face.map((k) => corners[k]),
    edges: edges.map((i) => [corners[BOX_EDGES[2 * i]], corners[BOX_EDGES[2 * i + 1]]]),
  };
}

/** Returns a triangle; of its edges those that are drawn, as a flat wall has edges between its triangles that no one sees. */
function triangleFace(mesh: MeshGeometry, row: number, move: (one: Vec3) => Vec3): Face {
  const numbers = cornersOf(mesh, row);
  const points = [0, 3, 6].map((k) => numbers.slice(k, k + 3) as Vec3);
  const isAt = (vertex: number, point: Vec3) => point.every((value, a) => mesh.vertices[3 * vertex + a] === value);
  const isDrawn = ([a, b]: Segment) => {
    for (let i = 0; i < mesh.edges.length; i += 2) {
      const [from, to] = [mesh.edges[i], mesh.edges[i + 1]];
      if ((isAt(from, a) && isAt(to, b)) || (isAt(from, b) && isAt(to, a))) return true;
    }
    return false;
  };
  const sides = points.map((from, k): Segment => [from, points[(k + 1) % 3]]).filter(isDrawn);
  return { corners: points.map(move), edges: sides.map(([from, to]): Segment => [move(from), move(to)]) };
}

/** Returns the angle at the second of three points, in degrees. */
export function angleOf([from, at, to]: readonly Vec3[]): number {
  const [u, v] = [sub(from, at), sub(to, at)];
  return (Math.atan2(length(cross(u, v)), dot(u, v)) * 180) / Math.PI;
}

/** A length, or another number, with its unit. */
export const withUnit = (value: number, unitName: string): string => `${short(value)} ${unitName}`.trim();

/** Returns what measured points say: the last of the lengths with its parts, and the angle. */
export function measuredText(points: readonly Vec3[], unitName: string): string {
  const [from, to] = points.slice(-2);
  if (!to) return from ? `${from.map((value) => Number(value.toPrecision(10))).join(", ")} · click the other end` : "Click two points to measure; a third gives an angle";
  const delta = sub(to, from);
  const parts = delta.map((value, a) => `d${"xyz"[a]} ${withUnit(value, unitName)}`);
  const angle = points.length === MOST_POINTS ? [`angle ${withUnit(angleOf(points), "°")}`] : [];
  return [`distance ${withUnit(length(delta), unitName)}`, ...parts, ...angle].join(" · ");
}
