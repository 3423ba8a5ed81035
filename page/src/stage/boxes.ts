/** Boxes: two texels each, fetched by seven vertices a box, or by one where it has few pixels. */

import * as THREE from "three";
import type { BoxesGeometry, InstancesGeometry, PaletteRows, Vec3 } from "../types.ts";
import { baseBounds, transformed } from "./bounds.ts";
import { inPicture, type Layer, type LayerView, type Part, pixelRange } from "./layer.ts";
import { largeBoxes } from "./large.ts";
import { chunkCount, chunkLimits, joined, largestFirst } from "./order.ts";
import { material, plain, type SharedUniforms, table, transformTable, type Uniforms } from "./program.ts";
import type { Pass } from "./shaders.ts";
import { type Bounds, corners, emptyBounds, include } from "./vec.ts";

/** Boxes relative to the scene's shift, in the order in which they are drawn. */
export interface BoxRows {
  lower: Float32Array;
  upper: Float32Array;
  objects: Uint32Array;
  /** Six bits a box: its lower and upper faces of x, y and z that others cover, which are not drawn. */
  covered?: Uint8Array;
  /** Rows of the palette, of boxes that are no objects. */
  paletteRows?: PaletteRows | null;
}

/** Rows that are drawn by one call, and how large they are. */
interface Chunk {
  first: number;
  count: number;
  bounds: Bounds;
  smallest: number;
  largest: number;
  sides: Sides;
  dots: THREE.Points;
}

/** The faces of boxes towards the eye, and those away from it. */
type Sides = [THREE.Mesh, THREE.Mesh];
type Drawn = "side" | "dot";
/** Boxes are chosen one by one from so many on, if they are a smaller part of all than this. */
const LEAST_CHOSEN = 6000;
const WORTHWHILE = 0.5;
/** The most chunks of a layer that has all draw calls of a picture: eight calls each, if it is cut and all passes are needed. */
const MOST_CHUNKS = 5;
const DOT_PASSES: readonly Pass[] = ["opaque", "translucent"];

/** Returns boxes relative to a point, without what is outside of bounds. */
export function boxRows(boxes: BoxesGeometry, shift: Vec3, bounds: Bounds): BoxRows {
  const count = boxes.lower.length / 3;
  const relative = (ends: Float64Array) => {
    const out = new Float32Array(ends.length);
    for (let i = 0; i < ends.length; i++) {
      const a = i % 3;
      out[i] = Math.min(bounds.upper[a], Math.max(bounds.lower[a], ends[i])) - shift[a];
    }
    return out;
  };
  const objects = Uint32Array.from({ length: count }, (_, i) => boxes.firstObject + i);
  return { lower: relative(boxes.lower), upper: relative(boxes.upper), objects };
}

/** Returns all rows, the largest first; the covered faces are given for all or for none. */
export function joinedBoxes(all: readonly BoxRows[]): BoxRows {
  const covered = all.every((rows) => rows.covered) ? joined(Uint8Array, all.map((rows) => rows.covered!)) : undefined;
  const lower = joined(Float32Array, all.map((rows) => rows.lower));
  const upper = joined(Float32Array, all.map((rows) => rows.upper));
  return sorted({ lower, upper, objects: joined(Uint32Array, all.map((rows) => rows.objects)), covered });
}

/** Returns rows with the largest first, neighbours together. */
function sorted(rows: BoxRows): BoxRows {
  const count = rows.objects.length;
  const sizes = new Float32Array(count);
  const middles = new Float32Array(3 * count);
  for (let i = 0; i < 3 * count; i++) {
    sizes[(i / 3) | 0] = Math.max(sizes[(i / 3) | 0], rows.upper[i] - rows.lower[i]);
    middles[i] = (rows.upper[i] + rows.lower[i]) / 2;
  }
  const order = largestFirst(sizes, middles);
  const take = (ends: Float32Array) =>
    Float32Array.from({ length: 3 * count }, (_, i) => ends[3 * order[(i / 3) | 0] + (i % 3)]);
  const objects = order.map((i) => rows.objects[i]);
  const covered = rows.covered && Uint8Array.from(order, (i) => rows.covered![i]);
  return { lower: take(rows.lower), upper: take(rows.upper), objects, covered };
}

/** Draws boxes, or copies of a base of boxes. */
export class BoxLayer implements Layer {
  private fixedBytes: number;
  private readonly chunks: Chunk[] = [];
  private readonly textures: THREE.Texture[];
  private readonly materials = new Map<string, THREE.RawShaderMaterial>();
  private readonly uniforms: Uniforms;
  private readonly defines: Record<string, number>;
  private readonly geometry = new THREE.BufferGeometry();
  private readonly dotGeometry = new THREE.BufferGeometry();
  /** Eight numbers a box, of which the largest can be found; null for copies. */
  private readonly boxes: Float32Array | null;
  private readonly selection = new Selection((mesh, far) => this.prepared(mesh, 0, far));
  private selected: { view: LayerView; objects: Sides[]; least: number } | null = null;

  private constructor(shared: SharedUniforms, tables: { boxes: THREE.Texture; copies?: THREE.Texture }, own: Uniforms) {
    const boxes = { value: tables.boxes };
    const copies = { value: tables.copies };
    const limits = { value: new THREE.Vector2() };
    const changing = { first: { value: 0 }, farSide: { value: false }, stride: { value: 1 }, limits };
    this.uniforms = { ...shared, boxes, ...(tables.copies ? { copies } : {}), ...changing, ...own };
    this.textures = [tables.boxes, ...(tables.copies ? [tables.copies] : [])];
    this.defines = tables.copies ? { COPIES: 1 } : {};
    this.boxes = tables.copies ? null : (tables.boxes.image as { data: Float32Array }).data;
    this.fixedBytes = this.textures.reduce((sum, texture) => sum + (texture.image as ImageData).data.byteLength, 0);
  }

  /** Returns the layer of boxes that are sorted by size. */
  static ofRows(rows: BoxRows, shared: SharedUniforms, share: number): BoxLayer {
    const layer = new BoxLayer(shared, { boxes: rowTable(rows) }, {});
    const count = rows.objects.length;
    const limits = chunkLimits(count, chunkCount(count, share * MOST_CHUNKS));
    for (let k = 0; k + 1 < limits.length; k++)
      layer.addChunk(limits[k], limits[k + 1], extents(rows, limits[k], limits[k + 1]));
    return layer.finished();
  }

  /** Returns the layer of copies of boxes: the base once, a matrix a copy. */
  static ofCopies(
    copies: InstancesGeometry & { base: BoxesGeometry },
    shift: Vec3,
    shared: SharedUniforms,
    share: number,
  ): BoxLayer {
    const { lower, upper, paletteRows } = copies.base;
    const inBase = lower.length / 3;
    const [low, high] = [Float32Array.from(lower), Float32Array.from(upper)];
    const base = { lower: low, upper: high, objects: new Uint32Array(inBase), paletteRows };
    const tables = { boxes: rowTable(base), copies: transformTable(copies.transforms, shift).texture };
    const own = { inBase: { value: inBase }, firstObject: { value: copies.firstObject } };
    const layer = new BoxLayer(shared, tables, own);
    const count = copies.transforms.length / 12;
    const limits = chunkLimits(count, Math.min(count, chunkCount(count * inBase, share * MOST_CHUNKS)));
    for (let k = 0; k + 1 < limits.length; k++) {
      const range = copyExtents(copies, shift, limits[k], limits[k + 1]);
      layer.addChunk(limits[k] * inBase, limits[k + 1] * inBase, range);
    }
    return layer.finished();
  }

  private addChunk(first: number, end: number, range: Extents): void {
    const count = end - first;
    const side = (far: boolean) => {
      const geometry = this.geometry.clone();
      geometry.setDrawRange(0, 18 * count);
      return this.prepared(plain(new THREE.Mesh(geometry)), first, far);
    };
    const dots = this.prepared(plain(new THREE.Points(this.dotGeometry.clone())), first, false);
    this.chunks.push({ first, count, ...range, sides: [side(false), side(true)], dots });
  }

  /** Gives all chunks one buffer of indices: those of the largest chunk. */
  private finished(): BoxLayer {
    const most = Math.max(...this.chunks.map((chunk) => chunk.count));
    const index = new THREE.BufferAttribute(faceIndices(most), 1);
    for (const chunk of this.chunks) for (const mesh of chunk.sides) mesh.geometry.setIndex(index);
    this.fixedBytes += index.array.byteLength;
    return this;
  }

  get bytes(): number {
    return this.fixedBytes + this.selection.bytes;
  }

  private prepared<T extends THREE.Mesh | THREE.Points>(object: T, first: number, far: boolean): T {
    object.onBeforeRender = () => {
      this.uniforms.first.value = first;
      this.uniforms.farSide.value = far;
      (object.material as THREE.RawShaderMaterial).uniformsNeedUpdate = true;
    };
    return object;
  }

  parts(pass: Pass, view: LayerView): Part[] {
    if (pass === "lines") return [];
    this.uniforms.stride.value = view.stride;
    const chunks = this.chunks.filter((chunk) => inPicture(chunk.bounds, view));
    const sides = chunks.filter((chunk) => chunk.largest * pixelRange(chunk.bounds, view)[1] >= view.dotsBelow);
    const { objects, least } = this.chosen(sides, view);
    (this.uniforms.limits.value as THREE.Vector2).set(least, least);
    const drawn = objects.flatMap((pair) => (view.cut ? pair : pair.slice(0, 1)));
    const shapes = drawn.map((object) => ({ object, material: this.material("side", pass, view.cut) }));
    if (!DOT_PASSES.includes(pass)) return shapes;
    const small = chunks.filter((chunk) => chunk.smallest * pixelRange(chunk.bounds, view)[0] < least);
    const material = this.material("dot", pass);
    const dots = small.map((chunk) => {
      chunk.dots.geometry.setDrawRange(0, Math.ceil(chunk.count / view.stride));
      return { object: chunk.dots, material, always: true };
    });
    return [...dots, ...shapes];
  }

  /** Returns what draws the faces of boxes, and the pixels from which on boxes are among them. */
  private chosen(chunks: readonly Chunk[], view: LayerView): { objects: Sides[]; least: number } {
    const all = { objects: chunks.map((chunk) => chunk.sides), least: view.dotsBelow };
    const rows = chunks.reduce((sum, chunk) => sum + chunk.count, 0);
    if (!view.choose || this.boxes === null || rows <= Math.min(view.mostBoxes, LEAST_CHOSEN)) return all;
    if (this.selected?.view === view) return this.selected;
    const ranges = chunks.map((chunk) => [chunk.first, chunk.first + chunk.count] as const);
    const large = largeBoxes(this.boxes, ranges, view, view.mostBoxes);
    const worthwhile = large.rows.length < WORTHWHILE * rows || large.rows.length <= LEAST_CHOSEN;
    const objects = worthwhile ? this.selection.draw(large.rows) : all.objects;
    this.selected = { view, objects, least: large.least };
    return this.selected;
  }

  /** Returns a program; capped: it draws the faces that a cut makes of boxes. */
  private material(drawn: Drawn, pass: Pass, capped = false): THREE.RawShaderMaterial {
    const key = `${drawn} ${pass} ${capped}`;
    const defines = capped ? { ...this.defines, CAPPED: 1 } : this.defines;
    const found = this.materials.get(key) ?? material(drawn === "dot" ? "dot" : "box", pass, this.uniforms, defines);
    this.materials.set(key, found);
    return found;
  }

  dispose(): void {
    this.textures.forEach((texture) => texture.dispose());
    this.materials.forEach((one) => one.dispose());
    for (const chunk of this.chunks) [...chunk.sides, chunk.dots].forEach((object) => object.geometry.dispose());
    this.selection.dispose();
  }
}

/** Some boxes, by indices that are written for each picture. */
class Selection {
  private index = new THREE.BufferAttribute(new Uint32Array(0), 1);
  private readonly sides: Sides[] = [];
  private readonly prepared: (mesh: THREE.Mesh, far: boolean) => THREE.Mesh;

  constructor(prepared: (mesh: THREE.Mesh, far: boolean) => THREE.Mesh) {
    this.prepared = prepared;
  }

  /** Returns what draws the boxes of some rows. */
  draw(rows: readonly number[]): Sides[] {
    const index = this.reserve(18 * rows.length);
    rows.forEach((row, i) => writeFaces(index.array as Uint32Array, i, row));
    index.clearUpdateRanges();
    index.addUpdateRange(0, 18 * rows.length);
    index.needsUpdate = true;
    if (rows.length === 0) return [];
    const limits = chunkLimits(rows.length, chunkCount(rows.length, MOST_CHUNKS));
    return limits.slice(1).map((end, k) => this.range(k, 18 * limits[k], 18 * (end - limits[k])));
  }

  private reserve(size: number): THREE.BufferAttribute {
    if (this.index.count >= size) return this.index;
    this.dispose();
    const grown = new Uint32Array(Math.ceil(1.25 * size));
    this.index = new THREE.BufferAttribute(grown, 1).setUsage(THREE.DynamicDrawUsage);
    return this.index;
  }

  private range(k: number, first: number, count: number): Sides {
    const geometry = () => new THREE.BufferGeometry().setIndex(this.index);
    const side = (far: boolean) => this.prepared(plain(new THREE.Mesh(geometry())), far);
    this.sides[k] ??= [side(false), side(true)];
    for (const mesh of this.sides[k]) mesh.geometry.setDrawRange(first, count);
    return this.sides[k];
  }

  get bytes(): number {
    return this.index.array.byteLength;
  }

  dispose(): void {
    this.sides.forEach((pair) => pair.forEach((mesh) => mesh.geometry.dispose()));
    this.sides.length = 0;
  }
}

function rowTable(rows: BoxRows): THREE.Texture {
  const { texture, data } = table(2 * rows.objects.length, (length) => new Float32Array(length));
  for (let i = 0; i < rows.objects.length; i++) {
    for (let a = 0; a < 3; a++) {
      data[8 * i + a] = rows.lower[3 * i + a];
      data[8 * i + 4 + a] = rows.upper[3 * i + a];
    }
    data[8 * i + 3] = rows.objects[i];
    data[8 * i + 7] = (rows.covered?.[i] ?? 0) + 64 * (rows.paletteRows?.[i] ?? 0);
  }
  return texture;
}

/** Returns triangles of three faces of boxes; the last vertex of each is in one face alone. */
export function faceIndices(boxes: number): Uint32Array {
  const index = new Uint32Array(18 * boxes);
  for (let i = 0; i < boxes; i++) writeFaces(index, i, i);
  return index;
}

/** Vertices of the faces of a box; the faces have 0 in common. */
const FACES = [0, 1, 2].flatMap((a) => {
  const [next, other, own] = [1 + ((a + 1) % 3), 1 + ((a + 2) % 3), 4 + a];
  return [0, next, own, other, 0, own];
});

function writeFaces(index: Uint32Array, at: number, row: number): void {
  for (let k = 0; k < 18; k++) index[18 * at + k] = 7 * row + FACES[k];
}

/** Where rows are, and the largest extents of the smallest and of the largest of them. */
interface Extents {
  bounds: Bounds;
  smallest: number;
  largest: number;
}

function extents(rows: BoxRows, first: number, end: number): Extents {
  const range = { bounds: emptyBounds(), smallest: Infinity, largest: 0 };
  for (let i = first; i < end; i++) {
    let size = 0;
    for (let a = 0; a < 3; a++) {
      const [low, high] = [rows.lower[3 * i + a], rows.upper[3 * i + a]];
      size = Math.max(size, high - low);
      range.bounds.lower[a] = Math.min(range.bounds.lower[a], low);
      range.bounds.upper[a] = Math.max(range.bounds.upper[a], high);
    }
    range.smallest = Math.min(range.smallest, size);
    range.largest = Math.max(range.largest, size);
  }
  return range;
}

function copyExtents(copies: InstancesGeometry, shift: Vec3, first: number, end: number): Extents {
  const base = corners(baseBounds(copies.base));
  const range = { bounds: emptyBounds(), smallest: 0, largest: 0 };
  for (let copy = first; copy < end; copy++) {
    const own = emptyBounds();
    for (const corner of base) {
      const [x, y, z] = transformed(copies.transforms, copy, corner);
      include(own, x - shift[0], y - shift[1], z - shift[2]);
    }
    include(range.bounds, ...own.lower);
    include(range.bounds, ...own.upper);
    const size = Math.hypot(...own.upper.map((high, a) => high - own.lower[a]));
    range.largest = Math.max(range.largest, size);
  }
  return range;
}
