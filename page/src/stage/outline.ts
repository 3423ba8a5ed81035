/** Outlines of chosen objects, drawn over all: lines relative to the scene's shift. */

import type { Geometry, InstancesGeometry, MeshGeometry, SceneModel, Vec3 } from "../types.ts";
import { baseBounds, transformed } from "./bounds.ts";
import { BOX_EDGES } from "./grid.ts";
import { type Grouped, grouped, rowsOf } from "./group.ts";
import { objectBounds } from "./hull.ts";
import { type Bounds, corners, isEmpty, sub } from "./vec.ts";

/** The most objects that are outlined at once. */
export const MOST_OUTLINES = 200;
/** The most edges of one object; of more, its bounds are drawn. */
const MOST_EDGES = 3000;

/** Returns lines around an object, six coordinates each. */
export function outlineOf(model: SceneModel, object: number): number[] {
  const geometry = model.geometries.find((one) => object >= one.firstObject && object < one.firstObject + one.objects);
  if (!geometry || geometry.type === "planes") return [];
  const own = edgesOf(geometry, object - geometry.firstObject);
  const lines = own.length > 0 ? own : boxEdges(objectBounds(model, [object]));
  return lines.flatMap((point) => sub(point, model.shift));
}

function edgesOf(geometry: Geometry, own: number): Vec3[] {
  if (geometry.type === "mesh") return meshEdges(geometry, own);
  return geometry.type === "instances" ? copyEdges(geometry, own) : [];
}

/** Returns the ends of the sharp edges of one object of a mesh. */
function meshEdges(mesh: MeshGeometry, own: number): Vec3[] {
  const edges = rowsOf(edgesByObject(mesh), own);
  if (edges.length > MOST_EDGES) return [];
  return [...edges].flatMap((i) => [vertexOf(mesh, mesh.edges[2 * i]), vertexOf(mesh, mesh.edges[2 * i + 1])]);
}

const EDGES = new WeakMap<MeshGeometry, Grouped>();

/** Returns the edges of each object: that of a triangle at the edge's first vertex. */
function edgesByObject(mesh: MeshGeometry): Grouped {
  const found = EDGES.get(mesh) ?? grouped(edgeObjects(mesh), mesh.objects);
  EDGES.set(mesh, found);
  return found;
}

function edgeObjects(mesh: MeshGeometry): Uint32Array {
  const owners = new Uint32Array(mesh.vertices.length / 3);
  mesh.faces.forEach((vertex, i) => (owners[vertex] = mesh.triangleObjects[(i / 3) | 0]));
  return Uint32Array.from({ length: mesh.edges.length / 2 }, (_, i) => owners[mesh.edges[2 * i]]);
}

function vertexOf(mesh: MeshGeometry, i: number): Vec3 {
  return [mesh.vertices[3 * i], mesh.vertices[3 * i + 1], mesh.vertices[3 * i + 2]];
}

/** Returns the ends of the edges of a copy: those of its base, or of the base's bounds. */
function copyEdges(copies: InstancesGeometry, copy: number): Vec3[] {
  const { base } = copies;
  const sharp = base.type === "mesh" && base.edges.length <= 2 * MOST_EDGES ? [...base.edges] : [];
  const points = base.type === "mesh" ? sharp.map((i) => vertexOf(base, i)) : [];
  const ends = points.length > 0 ? points : boxEdges(baseBounds(base));
  return ends.map((point) => transformed(copies.transforms, copy, point));
}

/** Returns the ends of the twelve edges of bounds. */
export function boxEdges(bounds: Bounds): Vec3[] {
  if (isEmpty(bounds)) return [];
  const points = corners(bounds);
  return BOX_EDGES.map((k) => points[k]);
}
