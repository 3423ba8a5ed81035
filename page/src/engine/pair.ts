/** One ray and one primitive: where the line meets its slabs or its plane, exact. */

import type { BoxesGeometry, Geometry, GridGeometry, Hit, InstancesGeometry, MeshGeometry } from "../types.ts";
import type { PlanesGeometry, Ray, SceneModel } from "../types.ts";
import { cellIndex } from "../stage/bounds.ts";
import { cornersOf } from "./boxes.ts";
import { boxContact, crossingOf, isEmpty, rangeOf, WorldLine, type Contact, type Crossing, type Line } from "./contact.ts";
import { dot, ratio, vector, whole } from "./exact.ts";
import { Query } from "./found.ts";
import { InstancesTarget, LocalLine } from "./instances.ts";
import { isBefore, Time } from "./time.ts";

/** An axis of a box: its planes, and the times between them; null where the line is parallel to them. */
export interface AxisSlab {
  lower: number;
  upper: number;
  times: { near: Time; far: Time } | null;
  /** Whether a parallel line is between the planes. */
  inside: boolean;
}

export interface BoxPair {
  kind: "box";
  /** The name of the primitive, and of its coordinates where they are not the world's. */
  name: string;
  slabs: AxisSlab[];
  contact: Contact | null;
}

export interface TrianglePair {
  kind: "triangle";
  name: string;
  /** Nine coordinates. */
  corners: number[];
  /** Where the line crosses the triangle's plane; null if it is parallel or the triangle has no area. */
  crossing: Crossing | null;
  hit: boolean;
}

export interface PlanePair {
  kind: "plane";
  name: string;
  /** The plane has the points p with normal · p = offset. */
  normal: number[];
  offset: number;
  /** Where the line crosses the plane; null if it is parallel. */
  time: Time | null;
  hit: boolean;
}

export type Pair = BoxPair | TrianglePair | PlanePair;

/** Returns the pair of a ray and the primitive of a hit. t of the hit is not read. */
export function pairOf(model: Pick<SceneModel, "geometries">, ray: Ray, hit: Hit): Pair {
  const geometry: Geometry = model.geometries[hit.geometry];
  const line = new WorldLine(ray);
  switch (geometry.type) {
    case "boxes":
      return ofBox(`box ${hit.primitive}`, line, ray, geometry, hit.primitive);
    case "grid":
      return ofBox(`cell ${hit.primitive}`, line, ray, boxOfCell(geometry, hit.primitive), 0);
    case "mesh":
      return ofTriangle(`triangle ${hit.primitive}`, line, ray, geometry, hit.primitive);
    case "instances":
      return ofCopy(geometry, ray, hit.primitive);
    case "planes":
      return ofPlane(geometry, ray, hit.primitive);
  }
}

const rowsOfCopy = ({ transforms }: InstancesGeometry, copy: number) => transforms.subarray(12 * copy, 12 * copy + 12);

/** Returns the row of the base that a ray hits first in a copy; 0 of a miss. */
export function firstInCopy(instances: InstancesGeometry, ray: Ray, copy: number): number {
  const query = new Query(ray, null);
  const transforms = rowsOfCopy(instances, copy);
  new InstancesTarget(0, { ...instances, firstObject: 0, objects: 1, transforms }).find(query);
  return isEmpty(ray) ? 0 : (query.sorted()[0]?.primitive ?? 0);
}

/** Returns the pair of a ray and what it hits first in a copy; of a miss, the first row of the base. */
function ofCopy(instances: InstancesGeometry, ray: Ray, copy: number): Pair {
  const inner = firstInCopy(instances, ray, copy);
  const line = new LocalLine(ray, rowsOfCopy(instances, copy));
  const name = `${inner} of copy ${copy}, in the coordinates of what is copied`;
  const { base } = instances;
  return base.type === "boxes" ? ofBox(`box ${name}`, line, ray, base, inner) : ofTriangle(`triangle ${name}`, line, ray, base, inner);
}

function ofBox(name: string, line: Line, ray: Ray, boxes: Pick<BoxesGeometry, "lower" | "upper">, row: number): BoxPair {
  const lower = boxes.lower.subarray(3 * row, 3 * row + 3);
  const upper = boxes.upper.subarray(3 * row, 3 * row + 3);
  const slabs = [0, 1, 2].map((axis) => slabOf(line, axis, lower[axis], upper[axis]));
  const contact = isEmpty(ray) ? null : boxContact(line, rangeOf(ray), lower, upper);
  return { kind: "box", name, slabs, contact };
}

function slabOf(line: Line, axis: number, lower: number, upper: number): AxisSlab {
  const sign = line.sign(axis);
  if (sign === 0) return { lower, upper, times: null, inside: line.isBetween(axis, lower, upper) };
  const [first, last] = sign > 0 ? [lower, upper] : [upper, lower];
  return { lower, upper, times: { near: line.timeOf(axis, first), far: line.timeOf(axis, last) }, inside: true };
}

function ofTriangle(name: string, line: Line, ray: Ray, mesh: MeshGeometry, row: number): TrianglePair {
  const corners = cornersOf(mesh, row);
  const crossing = crossingOf(line, corners);
  const hit = crossing !== null && !isEmpty(ray) && crossing.isIn(rangeOf(ray));
  return { kind: "triangle", name, corners, crossing, hit };
}

function ofPlane({ normals, offsets }: PlanesGeometry, ray: Ray, row: number): PlanePair {
  const normal = Array.from(normals.subarray(3 * row, 3 * row + 3));
  const time = planeCrossing(ray, normal, offsets[row]);
  const { start, end } = rangeOf(ray);
  const hit = time !== null && !isEmpty(ray) && !isBefore(time, start) && !isBefore(end, time);
  return { kind: "plane", name: `plane ${row}`, normal, offset: offsets[row], time, hit };
}

/** Returns (offset - n · o) / (n · d), in integers over one power of two; null if n · d is 0. */
function planeCrossing({ origin, direction }: Ray, normal: readonly number[], offset: number): Time | null {
  const { integers, shift } = whole([...origin, ...direction, ...normal, offset]);
  const n = vector(integers, 6);
  const along = dot(n, vector(integers, 3));
  return along === 0n ? null : Time.of(ratio((integers[9] << shift) - dot(n, vector(integers, 0)), along));
}

/** Returns the box of a cell. */
export function boxOfCell(grid: GridGeometry, cell: number): { lower: Float64Array; upper: Float64Array } {
  const corner = (more: number) => Float64Array.from(cellIndex(grid, cell), (step, axis) => grid.edges[axis][step + more]);
  return { lower: corner(0), upper: corner(1) };
}
