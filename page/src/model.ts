/** Makes the model of a scene from its frames. */

import type {
  BoxesGeometry,
  Geometry,
  GridGeometry,
  InstancesGeometry,
  Label,
  MeshGeometry,
  Numbers,
  PaletteRows,
  PlanesGeometry,
  PointCloud,
  RaySample,
  RayTable,
  SceneModel,
} from "./types.ts";
import { count } from "./format.ts";
import { finiteBounds, wholeMiddle } from "./extent.ts";
import { rolesOf, wordLabel } from "./roles.ts";
import { propertyReader } from "./properties.ts";
import type { FrameHeader, GeometryHeader, LabelHeader, PointsHeader, RaysHeader, SceneFrame, SceneHeader } from "./schema.ts";
import type { Frame } from "./wire.ts";

type ArrayClass<T extends Numbers> = new (length: number) => T;

/** Boxes and triangles that a saved page casts rays at. */
const MOST_OFFLINE = 100_000;

/** Returns whether a frame belongs to a scene. */
export function isOfScene(header: FrameHeader): header is SceneFrame {
  return ["scene", "rays", "table", "points"].includes(header.kind);
}

/** Returns the model of a scene frame and of those that follow it: rays, table, points. */
export function makeModel(frames: readonly Frame[]): SceneModel {
  const scene = frames.find((frame) => frame.kind === "scene");
  if (scene === undefined) throw new Error("no frame of the scene came");
  return frames.reduce(withFrame, sceneModel(scene, scene.header as SceneHeader));
}

/** Returns a model with the rays, the table or the points of one more frame. */
export function withFrame(model: SceneModel, frame: Frame): SceneModel {
  const { header } = frame;
  if (header.kind === "rays") return { ...model, rays: raySample(frame, header) };
  if (header.kind === "table") return { ...model, table: rayTable(frame, header.total) };
  if (header.kind === "points") return { ...model, points: pointCloud(frame, header) };
  return model;
}

function sceneModel(frame: Frame, header: SceneHeader): SceneModel {
  const { name, credit, unit, up, ids } = header;
  const geometries = header.geometries.map((one, k) => geometry(frame, `${k}.`, one));
  const objects = geometries.reduce((sum, one) => sum + one.objects, 0);
  const bounds = finiteBounds(geometries);
  const reason = offlineReason(geometries);
  const hidden = array(frame, "hidden", Uint8Array);
  const properties = array(frame, "properties", Uint8Array);
  const labels = header.labels.flatMap((one, i) => label(frame, `label.${i}`, one) ?? []);
  return {
    ...{ name, title: name, credit, unit, up, ids },
    shift: wholeMiddle(bounds),
    bounds,
    objects,
    geometries,
    palette: array(frame, "palette", Uint8Array),
    labels,
    ...rolesOf(labels),
    properties: properties && propertyReader(properties),
    hiddenAtStart: hidden && unpackBits(hidden, objects),
    offline: reason ? "none" : "exact",
    offlineReason: reason,
    ...{ rays: null, table: null, points: null },
  };
}

/** Returns why a saved page casts no rays at geometries; empty if it does. */
function offlineReason(geometries: readonly Geometry[]): string {
  const say = (why: string) => `This saved page casts no rays: its scene has ${why}.`;
  if (geometries.some(({ type }) => type === "planes")) return say("planes");
  const sizes = geometries.map((one) => (one.type === "instances" ? one.base.primitives : 0) + one.primitives);
  const total = sizes.reduce((sum, size, k) => sum + (geometries[k].type === "grid" ? 0 : size), 0);
  if (total <= MOST_OFFLINE) return "";
  return say(`${count(total)} boxes and triangles, and a page from disk tests ${count(MOST_OFFLINE)} at most`);
}

function geometry(frame: Frame, prefix: string, { type, ...sizes }: GeometryHeader): Geometry {
  const size = { ...sizes, paletteRows: paletteRows(frame, prefix) };
  switch (type) {
    case "boxes":
    case "mesh":
      return { ...base(frame, prefix), ...size };
    case "instances":
      return instances(frame, prefix, size);
    case "grid":
      return grid(frame, prefix, size);
    case "planes":
      return planes(f8(frame, `${prefix}normals`), f8(frame, `${prefix}offsets`), size);
    default:
      throw new Error(`geometries are boxes, mesh, instances, grid or planes; got ${JSON.stringify(type)}`);
  }
}

function paletteRows(frame: Frame, prefix: string): PaletteRows | null {
  const found = frame.arrays.get(`${prefix}colors`);
  return found instanceof Uint8Array || found instanceof Uint16Array ? found : null;
}

/** Returns boxes or a mesh, numbered from 0; a mesh without objects has one for each triangle. */
function base(frame: Frame, prefix: string): BoxesGeometry | MeshGeometry {
  if (frame.arrays.has(`${prefix}lower`)) {
    const lower = f8(frame, `${prefix}lower`);
    const rows = lower.length / 3;
    return { type: "boxes", firstObject: 0, objects: rows, primitives: rows, lower, upper: f8(frame, `${prefix}upper`) };
  }
  const faces = required(frame, `${prefix}faces`, Uint32Array);
  const rows = faces.length / 3;
  return {
    type: "mesh",
    firstObject: 0,
    objects: rows,
    primitives: rows,
    vertices: f8(frame, `${prefix}vertices`),
    faces,
    triangleObjects: array(frame, `${prefix}objects`, Uint32Array) ?? Uint32Array.from({ length: rows }, (_, i) => i),
    edges: array(frame, `${prefix}edges`, Uint32Array) ?? new Uint32Array(0),
  };
}

function instances(frame: Frame, prefix: string, size: Sizes): InstancesGeometry {
  return {
    type: "instances",
    ...size,
    transforms: f8(frame, `${prefix}transforms`),
    base: { ...base(frame, `${prefix}base.`), paletteRows: paletteRows(frame, `${prefix}base.`) },
  };
}

/** Returns planes with their points nearest to the origin; normals are scaled first, so that no square overflows. */
function planes(normals: Float64Array, offsets: Float64Array, size: Sizes): PlanesGeometry {
  const points = new Float64Array(normals.length);
  offsets.forEach((offset, i) => {
    const normal = normals.subarray(3 * i, 3 * i + 3);
    const largest = Math.max(...normal.map(Math.abs));
    const scaled = normal.map((value) => value / largest);
    const square = scaled.reduce((sum, value) => sum + value * value, 0);
    points.set(scaled.map((value) => value * (offset / largest / square)), 3 * i);
  });
  return { type: "planes", ...size, points, normals, offsets };
}

type Sizes = Pick<Geometry, "firstObject" | "objects" | "primitives" | "color" | "paletteRows">;

function grid(frame: Frame, prefix: string, size: Sizes): GridGeometry {
  const edges: GridGeometry["edges"] = [f8(frame, `${prefix}x`), f8(frame, `${prefix}y`), f8(frame, `${prefix}z`)];
  const occupied = array(frame, `${prefix}occupied`, Uint8Array);
  const total = edges.reduce((product, axis) => product * (axis.length - 1), 1);
  return {
    type: "grid",
    ...size,
    edges,
    occupied,
    cells: cellsOfObjects(occupied, total, size.objects),
    visible: array(frame, `${prefix}visible`, Uint32Array),
  };
}

/** Returns the cell of each object: the occupied ones, ascending; null where the grid is one object. */
function cellsOfObjects(occupied: Uint8Array | null, total: number, objects: number): Float64Array | null {
  if (occupied === null) return objects === total ? Float64Array.from({ length: total }, (_, i) => i) : null;
  const cells = new Float64Array(objects);
  let found = 0;
  for (let cell = 0; cell < total; cell++) {
    if ((occupied[cell >>> 3] >>> (cell & 7)) & 1) {
      if (found === objects) return null;
      cells[found++] = cell;
    }
  }
  return found === objects ? cells : null;
}

/** Returns a label of numbers, classes or text; null where no object has a value. */
function label(frame: Frame, array: string, { name, words }: LabelHeader): Label | null {
  if (words === null) return { name, kind: "number", values: f8(frame, array) };
  return words.length ? wordLabel(name, words, required(frame, array, Uint32Array)) : null;
}

function raySample(frame: Frame, { total, colors }: RaysHeader): RaySample {
  return {
    total,
    row: required(frame, "row", Uint32Array),
    origin: f8(frame, "origin"),
    direction: f8(frame, "direction"),
    tMin: f8(frame, "t_min"),
    tMax: f8(frame, "t_max"),
    colors,
  };
}

function rayTable(frame: Frame, total: number): RayTable {
  const numbers = { t: f8(frame, "t"), distance: f8(frame, "distance") };
  return { total, object: required(frame, "object", Int32Array), ...numbers };
}

function pointCloud(frame: Frame, { fields, colors }: PointsHeader): PointCloud {
  return {
    xyz: f8(frame, "xyz"),
    distance: f8(frame, "distance"),
    ray: required(frame, "ray", Int32Array),
    fields: fields.map((name, k) => ({ name, values: f8(frame, `field.${k}`) })),
    colors,
  };
}

/** Returns one byte a bit, the lowest bit of each byte first. */
export function unpackBits(bits: Uint8Array, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (bits[i >>> 3] >>> (i & 7)) & 1;
  return bytes;
}

/** Returns one bit a byte that is not 0, the lowest bit of each byte first. */
export function packBits(bytes: Uint8Array): Uint8Array {
  const bits = new Uint8Array((bytes.length + 7) >>> 3);
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== 0) bits[i >>> 3] |= 1 << (i & 7);
  return bits;
}

/** Returns an array of a frame if it is there; throws if it is of another type. */
function array<T extends Numbers>(frame: Frame, name: string, type: ArrayClass<T>): T | null {
  const found = frame.arrays.get(name);
  if (found === undefined) return null;
  if (found instanceof type) return found;
  throw new Error(`array ${name} of frame ${frame.kind} must be ${type.name}; got ${found.constructor.name}`);
}

function required<T extends Numbers>(frame: Frame, name: string, type: ArrayClass<T>): T {
  const found = array(frame, name, type);
  if (found === null) throw new Error(`array ${name} of frame ${frame.kind} is missing`);
  return found;
}

function f8(frame: Frame, name: string): Float64Array {
  return required(frame, name, Float64Array);
}
