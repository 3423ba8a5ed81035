/** Triangles: flat shades, sharp edges; also copies of them, by one matrix each. */

import * as THREE from "three";
import type { InstancesGeometry, MeshGeometry, Vec3 } from "../types.ts";
import type { Layer, LayerView, Part } from "./layer.ts";
import { growingLimits, joined, trianglesLargestFirst } from "./order.ts";
import {
  bytesOf,
  filledTable,
  material,
  plain,
  type SharedUniforms,
  transformTable,
  type Uniforms,
} from "./program.ts";
import type { Pass } from "./shaders.ts";
import { type Split, splitByOwner } from "./split.ts";
import { cross, length } from "./vec.ts";

/** Vertices with their objects: a vertex of two objects is there twice. */
export interface MeshRows {
  points: Float32Array;
  /** For each vertex the row of its object and colour. */
  owners: Uint32Array;
  /** For each object with each of its colours, `OWNER` numbers; see `ownerRow`. */
  objects: Float32Array;
  faces: Uint32Array;
  edges: Uint32Array;
}

/** The numbers of an object: as many as a texel has. */
export const OWNER = 4;

/**
 * Returns the numbers of an object.
 *
 * order: its place in the order of the engine; spacing: how far apart its edges are, as those of few pixels would
 * cover it. A table of looks has fewer objects than float32 counts exactly.
 */
export function ownerRow(object: number, order: number, spacing: number, paletteRow = 0): number[] {
  return [object, order, spacing, paletteRow];
}

/** Returns the vertices of a mesh relative to a point, with their objects. */
export function meshRows(mesh: MeshGeometry, shift: Vec3, palette: Uint8Array | null = null): MeshRows {
  const count = mesh.vertices.length / 3;
  const split = splitByOwner(mesh, palette);
  const { faces, owner, owners, copied } = split;
  const total = count + copied.length;
  const points = new Float32Array(3 * total);
  for (let i = 0; i < 3 * total; i++) {
    const vertex = (i / 3) | 0;
    const from = vertex < count ? vertex : copied[vertex - count];
    points[i] = mesh.vertices[3 * from + (i % 3)] - shift[i % 3];
  }
  const rank = ranks(mesh);
  const spacings = spacingsOf(mesh, points, split);
  const objects = new Float32Array(OWNER * owners.length);
  owners.forEach(({ object, paletteRow }, i) => {
    const row = ownerRow(mesh.firstObject + object, mesh.firstObject + rank[object], spacings[object], paletteRow);
    objects.set(row, OWNER * i);
  });
  const ordered = inOrder(faces, trianglesLargestFirst(points, faces));
  return { points, owners: owner, objects, faces: ordered, edges: mesh.edges };
}

/** Returns the triangles of all rows, the largest first. */
export function joinedMeshes(all: readonly MeshRows[]): MeshRows {
  if (all.length === 1) return all[0];
  const points = joined(Float32Array, all.map((rows) => rows.points));
  const numbered = (name: "faces" | "edges" | "owners", firsts: number[]) =>
    joined(Uint32Array, all.map((rows, k) => rows[name].map((row) => row + firsts[k])));
  const vertices = startsOf(all.map((rows) => rows.points.length / 3));
  const faces = numbered("faces", vertices);
  return {
    points,
    owners: numbered("owners", startsOf(all.map((rows) => rows.objects.length / OWNER))),
    objects: joined(Float32Array, all.map((rows) => rows.objects)),
    faces: inOrder(faces, trianglesLargestFirst(points, faces)),
    edges: numbered("edges", vertices),
  };
}

/** Returns where each of some arrays begins when they are one after the other. */
function startsOf(lengths: number[]): number[] {
  let end = 0;
  return lengths.map((length) => (end += length) - length);
}

/** Returns for each object how far apart its sharp edges are: twice its area by their length. */
function spacingsOf(mesh: MeshGeometry, points: Float32Array, { owner, owners }: Split): Float64Array {
  const areas = new Float64Array(mesh.objects);
  const lengths = new Float64Array(mesh.objects);
  const { edges, faces, triangleObjects } = mesh;
  for (let i = 0; i < edges.length; i += 2) lengths[owners[owner[edges[i]]].object] += length(between(points, edges[i], edges[i + 1]));
  triangleObjects.forEach((object, i) => {
    const [a, b, c] = faces.subarray(3 * i, 3 * i + 3);
    areas[object] += length(cross(between(points, a, b), between(points, a, c))) / 2;
  });
  return areas.map((area, object) => (2 * area) / (lengths[object] || 1));
}

function between(points: Float32Array, a: number, b: number): Vec3 {
  return [points[3 * b] - points[3 * a], points[3 * b + 1] - points[3 * a + 1], points[3 * b + 2] - points[3 * a + 2]];
}

/** Returns for each object its place by the number of its first triangle. */
function ranks(mesh: MeshGeometry): Uint32Array {
  const rank = new Uint32Array(mesh.objects).fill(mesh.objects - 1);
  const found = new Uint8Array(mesh.objects);
  let next = 0;
  for (const object of mesh.triangleObjects) {
    if (found[object]) continue;
    found[object] = 1;
    rank[object] = next++;
  }
  return rank;
}

function inOrder(faces: Uint32Array, order: Uint32Array): Uint32Array {
  return faces.map((_, i) => faces[3 * order[(i / 3) | 0] + (i % 3)]);
}

/** The most chunks of a layer that has all draw calls of a picture: three calls each, if all passes are needed. */
const MOST_CHUNKS = 10;
/** Triangles of the first chunk, the largest ones: a click on a slow device waits until a chunk is drawn. */
const FIRST_CHUNK = 1024;

/** Draws triangles and their sharp edges. */
export class MeshLayer implements Layer {
  readonly bytes: number;
  private readonly objects: THREE.Mesh[];
  private readonly lines: THREE.LineSegments | null;
  private readonly materials = new Map<Pass, THREE.RawShaderMaterial>();
  private readonly uniforms: Uniforms;
  private readonly tables: THREE.DataTexture[];
  private readonly defines: { [name: string]: number };

  constructor(
    rows: MeshRows,
    shared: SharedUniforms,
    share: number,
    copies: InstancesGeometry | null = null,
    shift: Vec3 = [0, 0, 0],
  ) {
    const objects = filledTable(rows.objects);
    const matrices = copies && transformTable(copies.transforms, shift).texture;
    const own = { copies: { value: matrices }, first: { value: 0 }, firstObject: { value: copies?.firstObject } };
    this.uniforms = { ...shared, objects: { value: objects }, ...(copies ? own : {}) };
    this.tables = matrices ? [objects, matrices] : [objects];
    const hasOwners = rows.objects.length > OWNER;
    this.defines = { ...(copies && { COPIES: 1 }), ...(hasOwners && { OWNERS: 1 }) };
    const base = geometryOf(rows, hasOwners, copies ? copies.transforms.length / 12 : null);
    const index = new THREE.BufferAttribute(rows.faces, 1);
    const triangles = rows.faces.length / 3;
    const limits = copies ? [0, triangles] : growingLimits(triangles, Math.max(1, Math.floor(share * MOST_CHUNKS)), FIRST_CHUNK);
    this.objects = limits.slice(1).map((end, k) => {
      const geometry = sharing(base, index);
      geometry.setDrawRange(3 * limits[k], 3 * (end - limits[k]));
      return plain(new THREE.Mesh(geometry));
    });
    const lines = rows.edges.length > 0 ? sharing(base, new THREE.BufferAttribute(rows.edges, 1)) : null;
    this.lines = lines && plain(new THREE.LineSegments(lines));
    const tables = this.tables.reduce((sum, { image }) => sum + (image.data?.byteLength ?? 0), 0);
    this.bytes = tables + bytesOf([...this.objects.map((one) => one.geometry), ...(lines ? [lines] : [])]);
  }

  parts(pass: Pass, _view: LayerView): Part[] {
    const own = this.material(pass);
    if (pass !== "lines") return this.objects.map((object) => ({ object, material: own }));
    return this.lines ? [{ object: this.lines, material: own }] : [];
  }

  private material(pass: Pass): THREE.RawShaderMaterial {
    const found = this.materials.get(pass) ?? material("mesh", pass, this.uniforms, this.defines);
    this.materials.set(pass, found);
    return found;
  }

  dispose(): void {
    this.tables.forEach((one) => one.dispose());
    this.materials.forEach((one) => one.dispose());
    this.objects.forEach((object) => object.geometry.dispose());
    this.lines?.geometry.dispose();
  }
}

function geometryOf(rows: MeshRows, hasOwners: boolean, copies: number | null): THREE.BufferGeometry {
  const geometry = copies === null ? new THREE.BufferGeometry() : new THREE.InstancedBufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(rows.points, 3));
  if (hasOwners) geometry.setAttribute("owner", new THREE.BufferAttribute(rows.owners, 1));
  if (geometry instanceof THREE.InstancedBufferGeometry) geometry.instanceCount = copies ?? 0;
  return geometry;
}

/** Returns a geometry with the same buffers and other indices. */
function sharing(base: THREE.BufferGeometry, index: THREE.BufferAttribute): THREE.BufferGeometry {
  const instanced = base instanceof THREE.InstancedBufferGeometry;
  const geometry = instanced ? new THREE.InstancedBufferGeometry() : new THREE.BufferGeometry();
  for (const [name, attribute] of Object.entries(base.attributes)) geometry.setAttribute(name, attribute);
  if (instanced) (geometry as THREE.InstancedBufferGeometry).instanceCount = base.instanceCount;
  geometry.setIndex(index);
  return geometry;
}
