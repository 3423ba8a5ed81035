/** Cells of a grid with a free face, as boxes; or the grid's outline. */

import type { GridGeometry, Vec3 } from "../types.ts";
import { cellIndex } from "./bounds.ts";
import { type BoxRows, BoxLayer, joinedBoxes } from "./boxes.ts";
import type { HalfSpace } from "./cut.ts";
import type { Layer, LayerView, Part } from "./layer.ts";
import { joinedMeshes, MeshLayer, type MeshRows, ownerRow } from "./mesh.ts";
import type { SharedUniforms } from "./program.ts";
import type { Pass } from "./shaders.ts";

/** The most cells that are drawn; of more with a free face, the first. */
const MOST_CELLS = 2_000_000;

/** Where a cell is to the cut, if it is not left whole: touched by a plane, or cut away whole. */
const TOUCHED = 1;
const AWAY = 2;

/** A length of many pixels in any view. */
const LARGE = 1e30;

/** Draws the cells that can be in view: hidden and cut ones open the view to those behind. */
export class GridLayer implements Layer {
  private layers: Layer[] = [];
  private drawn: string | null = null;

  constructor(
    private readonly grids: readonly GridGeometry[],
    private readonly shift: Vec3,
    private readonly shared: SharedUniforms,
    private readonly share: number,
  ) {}

  /** Chooses the cells anew, by the opacity of their objects and the cut. */
  update(rgba: Uint8Array, spaces: readonly HalfSpace[]): void {
    const state = `${this.grids.map((grid) => fingerprint(grid, opacityOf(grid, rgba)))} ${JSON.stringify(spaces)}`;
    if (state === this.drawn) return;
    this.dispose();
    this.drawn = state;
    const { shift, shared, share } = this;
    const hasCells = (grid: GridGeometry) => grid.cells !== null && grid.visible !== null;
    const outlines = this.grids.filter((grid) => !hasCells(grid)).map((grid) => outline(grid, shift));
    const rows = this.grids.filter(hasCells).map((grid) => freeCells(grid, opacityOf(grid, rgba), spaces, shift));
    if (outlines.length > 0) this.layers.push(new MeshLayer(joinedMeshes(outlines), shared, share));
    const cells = joinedBoxes(rows);
    if (cells.objects.length > 0) this.layers.push(BoxLayer.ofRows(cells, shared, share));
  }

  parts(pass: Pass, view: LayerView): Part[] {
    return this.layers.flatMap((layer) => layer.parts(pass, view));
  }

  get bytes(): number {
    return this.layers.reduce((sum, layer) => sum + layer.bytes, 0);
  }

  dispose(): void {
    this.layers.splice(0).forEach((layer) => layer.dispose());
    this.drawn = null;
  }
}

type Opacity = (object: number) => number;

/** Returns the opacity of a grid's objects, by four bytes for each object of the scene. */
function opacityOf(grid: GridGeometry, rgba: Uint8Array): Opacity {
  return (object) => rgba[4 * (grid.firstObject + object) + 3];
}

/** Returns a number that is the same where the same cells are drawn: FNV-1a of which objects are opaque. */
function fingerprint({ objects }: GridGeometry, opacity: Opacity): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < objects; i++)
    hash = Math.imul(hash ^ (opacity(i) === 255 ? 1 : opacity(i) > 0 ? 2 : 3), 0x01000193);
  return hash;
}

/** Returns the boxes of the cells of a grid that can be in view, without the faces that others cover. */
function freeCells(grid: GridGeometry, opacity: Opacity, spaces: readonly HalfSpace[], shift: Vec3): BoxRows {
  const objects = visibleObjects(grid, opacity, spaces);
  return { ...cellRows(grid, objects, shift), covered: coveredFaces(grid, objects, opacity, spaces) };
}

/** Returns the objects with a face towards what is free, hidden, translucent or cut away. */
export function visibleObjects(
  grid: GridGeometry,
  opacity: Opacity,
  spaces: readonly HalfSpace[],
): Uint32Array {
  const cells = grid.cells!;
  const asStored = spaces.length === 0 && cells.every((_, object) => opacity(object) === 255);
  if (asStored && grid.visible !== null) return grid.visible;
  const cut = cutStates(grid, spaces);
  const opaque = new CellSet(grid);
  for (let object = 0; object < cells.length; object++) {
    if (opacity(object) === 255 && cut[object] !== AWAY) opaque.add(cells[object]);
  }
  const chosen: number[] = [];
  for (let object = 0; object < cells.length && chosen.length < MOST_CELLS; object++) {
    if (opacity(object) === 0 || cut[object] === AWAY) continue;
    if (cut[object] === TOUCHED || !opaque.surrounds(cells[object])) chosen.push(object);
  }
  return Uint32Array.from(chosen);
}

/**
 * Returns the faces of cells that another covers, six bits a cell: they would show at the rim of what covers them.
 * Both cells are opaque, and the cut leaves both whole; else one could look into them.
 */
export function coveredFaces(
  grid: GridGeometry,
  objects: Uint32Array,
  opacity: Opacity,
  spaces: readonly HalfSpace[],
): Uint8Array {
  const cut = cutStates(grid, spaces);
  const solid = new CellSet(grid);
  const isSolid = (object: number) => opacity(object) === 255 && cut[object] === 0;
  grid.cells!.forEach((cell, object) => isSolid(object) && solid.add(cell));
  return Uint8Array.from(objects, (object) => (isSolid(object) ? solid.around(grid.cells![object]) : 0));
}

/** Returns where the cell of each object is to the planes of the cut. */
function cutStates(grid: GridGeometry, spaces: readonly HalfSpace[]): Uint8Array {
  const states = new Uint8Array(grid.cells!.length);
  for (const space of spaces) markCut(grid, space, states);
  return states;
}

function markCut(grid: GridGeometry, { point, normal }: HalfSpace, states: Uint8Array): void {
  // The part of each axis in normal · (corner - point), for the corners nearest to and farthest along the normal.
  const parts = (past: 0 | 1) =>
    grid.edges.map((edges, a) =>
      Float64Array.from(
        { length: edges.length - 1 },
        (_, i) => normal[a] * (edges[i + (normal[a] > 0 ? past : 1 - past)] - point[a]),
      ),
    );
  const [near, far] = [parts(0), parts(1)];
  const [ny, nz] = [grid.edges[1].length - 1, grid.edges[2].length - 1];
  grid.cells!.forEach((cell, object) => {
    const row = Math.floor(cell / nz);
    const [x, y, z] = [Math.floor(row / ny), row % ny, cell - row * nz];
    if (near[0][x] + near[1][y] + near[2][z] >= 0) states[object] = AWAY;
    else if (far[0][x] + far[1][y] + far[2][z] > 0) states[object] = Math.max(states[object], TOUCHED);
  });
}

/** Some cells of a grid, one bit each. */
class CellSet {
  private readonly bits: Uint8Array;
  private readonly shape: Vec3;

  constructor(grid: GridGeometry) {
    this.shape = grid.edges.map((edges) => edges.length - 1) as Vec3;
    this.bits = new Uint8Array(Math.ceil((this.shape[0] * this.shape[1] * this.shape[2]) / 8));
  }

  add(cell: number): void {
    this.bits[Math.floor(cell / 8)] |= 1 << (cell % 8);
  }

  private has(cell: number): boolean {
    return ((this.bits[Math.floor(cell / 8)] >> (cell % 8)) & 1) === 1;
  }

  /** Returns whether all six neighbours of a cell are in the set. */
  surrounds(cell: number): boolean {
    return this.around(cell) === 0b111111;
  }

  /** Returns which neighbours of a cell are in the set, one bit each: before and after it on x, on y and on z. */
  around(cell: number): number {
    const [nx, ny, nz] = this.shape;
    const z = cell % nz;
    const y = Math.floor(cell / nz) % ny;
    const x = Math.floor(cell / (ny * nz));
    const row = ny * nz;
    let bits = 0;
    if (x > 0 && this.has(cell - row)) bits |= 1;
    if (x < nx - 1 && this.has(cell + row)) bits |= 2;
    if (y > 0 && this.has(cell - nz)) bits |= 4;
    if (y < ny - 1 && this.has(cell + nz)) bits |= 8;
    if (z > 0 && this.has(cell - 1)) bits |= 16;
    if (z < nz - 1 && this.has(cell + 1)) bits |= 32;
    return bits;
  }
}

/** Returns the boxes of cells by their objects. */
function cellRows(grid: GridGeometry, objects: Uint32Array, shift: Vec3): BoxRows {
  const lower = new Float32Array(3 * objects.length);
  const upper = new Float32Array(3 * objects.length);
  objects.forEach((object, i) => {
    cellIndex(grid, grid.cells![object]).forEach((index, a) => {
      lower[3 * i + a] = grid.edges[a][index] - shift[a];
      upper[3 * i + a] = grid.edges[a][index + 1] - shift[a];
    });
  });
  return { lower, upper, objects: objects.map((object) => grid.firstObject + object) };
}

/** Returns the twelve edges of a grid, as a mesh without triangles. */
function outline(grid: GridGeometry, shift: Vec3): MeshRows {
  const points = new Float32Array(24);
  for (let k = 0; k < 8; k++) {
    for (let a = 0; a < 3; a++) {
      const edges = grid.edges[a];
      points[3 * k + a] = ((k >> a) & 1 ? edges[edges.length - 1] : edges[0]) - shift[a];
    }
  }
  const objects = Float32Array.from(ownerRow(grid.firstObject, grid.firstObject, LARGE)); // drawn however small it is
  return { points, owners: new Uint32Array(8), objects, faces: new Uint32Array(0), edges: Uint32Array.from(BOX_EDGES) };
}

/** Corners of the edges of a box; bit a of a corner: it is upper on axis a. */
export const BOX_EDGES = [0, 1, 2, 3, 4, 5, 6, 7, 0, 2, 1, 3, 4, 6, 5, 7, 0, 4, 1, 5, 2, 6, 3, 7];
