/** Cells of a rectilinear grid: the exact times of the planes that the line crosses, and the cells between them. */

import type { GridGeometry } from "../types.ts";
import { contactOf, type Contact } from "./contact.ts";
import type { Query, Target } from "./found.ts";
import { AFTER_ALL, BEFORE_ALL, earlier, isBefore, later, type Time } from "./time.ts";

/** Cells of an axis, first to last; none if last < first. */
interface Cells {
  first: number;
  last: number;
}

/** The line of a ray on one axis of a grid. Cells are numbered in the order in which the line crosses them. */
class GridAxis {
  private readonly times = new Map<number, Time>();
  private readonly sign: number;
  private readonly cells: number;

  constructor(
    private readonly query: Query,
    private readonly axis: number,
    private readonly edges: Float64Array,
  ) {
    this.sign = query.line.sign(axis);
    this.cells = edges.length - 1;
  }

  /** Returns the number of a cell in the grid. */
  cell(step: number): number {
    return this.sign < 0 ? this.cells - 1 - step : step;
  }

  enter(step: number): Time {
    return this.sign === 0 ? BEFORE_ALL : this.crossing(step);
  }

  leave(step: number): Time {
    return this.sign === 0 ? AFTER_ALL : this.crossing(step + 1);
  }

  /** Returns the steps in whose closed cells the line is at any time from begin to end. */
  within(begin: Time, end: Time): Cells {
    if (this.sign === 0) return this.around(this.query.ray.origin[this.axis]);
    const first = firstWhere(this.cells, (step) => !isBefore(this.leave(step), begin));
    const last = firstWhere(this.cells, (step) => isBefore(end, this.enter(step))) - 1;
    return { first, last };
  }

  /** Returns the one or two closed cells around a coordinate. */
  private around(x: number): Cells {
    const first = firstWhere(this.cells, (cell) => this.edges[cell + 1] >= x);
    const last = firstWhere(this.cells, (cell) => this.edges[cell] > x) - 1;
    return { first, last };
  }

  private crossing(step: number): Time {
    const edge = this.sign < 0 ? this.cells - step : step;
    let time = this.times.get(edge);
    if (time === undefined) {
      time = this.query.line.timeOf(this.axis, this.edges[edge]);
      this.times.set(edge, time);
    }
    return time;
  }
}

/** Returns the first of 0 to count - 1 for which a condition is true, as for all after it; count if there is none. */
function firstWhere(count: number, condition: (i: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (condition(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

export class GridTarget implements Target {
  constructor(
    private readonly geometry: number,
    private readonly grid: GridGeometry,
  ) {}

  find(query: Query): void {
    const [x, y, z] = this.grid.edges.map((edges, axis) => new GridAxis(query, axis, edges));
    const [, ny, nz] = this.grid.edges.map((edges) => edges.length - 1);
    const { start, end } = query.range;
    forEachCell(x, start, end, (i, begin, stop) =>
      forEachCell(y, begin, stop, (j, from, to) =>
        forEachCell(z, from, to, (k) => {
          const cell = (x.cell(i) * ny + y.cell(j)) * nz + z.cell(k);
          this.add(query, cell, () => contactIn(query, [x, y, z], [i, j, k]));
        }),
      ),
    );
  }

  private add(query: Query, cell: number, contactOfCell: () => Contact | null): void {
    const object = objectOfCell(this.grid, cell);
    if (object < 0 || !query.canHit(this.grid.firstObject + object)) return;
    const contact = contactOfCell();
    if (contact !== null) query.found.push({ geometry: this.geometry, object, index: cell, primitive: cell, contact });
  }
}

type Visit = (step: number, begin: Time, end: Time) => void;

/** Visits the cells of an axis that the line is in between two times, with the part of that time. */
function forEachCell(axis: GridAxis, begin: Time, end: Time, visit: Visit): void {
  const { first, last } = axis.within(begin, end);
  for (let step = first; step <= last; step++) {
    visit(step, later(begin, axis.enter(step)), earlier(end, axis.leave(step)));
  }
}

function contactIn(query: Query, axes: readonly GridAxis[], steps: readonly number[]): Contact | null {
  const enter = axes.map((axis, k) => axis.enter(steps[k])).reduce(later);
  const leave = axes.map((axis, k) => axis.leave(steps[k])).reduce(earlier);
  return contactOf(query.range, enter, leave);
}

/** Returns the object of a cell, within the grid; -1 if the cell is not occupied. */
export function objectOfCell(grid: GridGeometry, cell: number): number {
  if (!isOccupied(grid, cell)) return -1;
  const { cells } = grid;
  return cells === null ? 0 : firstWhere(cells.length, (i) => cells[i] >= cell);
}

function isOccupied({ occupied }: GridGeometry, cell: number): boolean {
  return occupied === null || ((occupied[Math.floor(cell / 8)] >>> (cell % 8)) & 1) === 1;
}
