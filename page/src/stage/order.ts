/** The order in which many boxes or triangles are drawn: large ones first, neighbours together. */

/** Returns the number of chunks of rows: few draw calls, each a part of a frame. */
export function chunkCount(rows: number, most: number, chunk = 8192): number {
  return Math.max(1, Math.min(Math.floor(most), Math.ceil(rows / chunk)));
}

/** Returns the first row of each chunk, and the end: chunks of equal size. */
export function chunkLimits(rows: number, chunks: number): number[] {
  return Array.from({ length: chunks + 1 }, (_, k) => Math.round((k * rows) / chunks));
}

/** Returns chunks that double from `first` rows on and end as equal ones: a moving picture needs small ones. */
export function growingLimits(rows: number, most: number, first = 16_384): number[] {
  const limits = [0];
  for (let size = first; limits[limits.length - 1] < rows; size *= 2) {
    const done = limits[limits.length - 1];
    const left = most + 1 - limits.length;
    const equal = Math.max(first, Math.ceil((rows - done) / left));
    const isEnough = size * (2 ** left - 1) >= rows - done; // by doubling, the chunks that are left reach the end
    limits.push(Math.min(rows, done + (isEnough ? Math.min(size, equal) : equal)));
  }
  return limits;
}

type Rows = Float32Array | Uint32Array | Uint8Array;

/** Returns arrays one after the other. */
export function joined<T extends Rows>(type: new (length: number) => T, all: readonly T[]): T {
  if (all.length === 1) return all[0];
  const made = new type(all.reduce((sum, one) => sum + one.length, 0));
  let start = 0;
  for (const one of all) {
    made.set(one, start);
    start += one.length;
  }
  return made;
}

const CLASSES = 32;
const CELLS = 512;
const MOST_SORTED = 2 ** 21;

/**
 * Returns the rows by halving sizes, and within each size along a Z-order curve of their middles.
 *
 * Size, cell and row are packed into the 53 bits of a float64, whose arrays sort without a function. More than
 * 2,097,152 rows stay in order.
 */
export function largestFirst(sizes: Float32Array, middles: Float32Array): Uint32Array {
  const count = sizes.length;
  if (count > MOST_SORTED) return Uint32Array.from(sizes, (_, i) => i);
  const most = sizes.reduce((a, b) => Math.max(a, b), 0);
  const cell = cellOf(middles);
  const keys = new Float64Array(count);
  for (let i = 0; i < count; i++) keys[i] = (sizeClass(sizes[i], most) * 2 ** 27 + cell(i)) * MOST_SORTED + i;
  keys.sort();
  return Uint32Array.from(keys, (key) => key % MOST_SORTED);
}

function sizeClass(size: number, most: number): number {
  if (!(size > 0)) return CLASSES - 1;
  return Math.min(CLASSES - 1, Math.floor(Math.log2(most / size)));
}

/** Returns a function that gives the number of a row's cell along a Z-order curve of 512 cells a side. */
function cellOf(middles: Float32Array): (row: number) => number {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < middles.length; i++) {
    low[i % 3] = Math.min(low[i % 3], middles[i]);
    high[i % 3] = Math.max(high[i % 3], middles[i]);
  }
  const size = Math.max(high[0] - low[0], high[1] - low[1], high[2] - low[2]) || 1;
  const index = (row: number, a: number) =>
    Math.min(CELLS - 1, Math.floor(((middles[3 * row + a] - low[a]) / size) * CELLS)) || 0;
  return (row) => spread(index(row, 0)) * 4 + spread(index(row, 1)) * 2 + spread(index(row, 2));
}

/** Returns nine bits with two zeros between each. */
function spread(bits: number): number {
  let x = bits;
  x = (x | (x << 16)) & 0x030000ff;
  x = (x | (x << 8)) & 0x0300f00f;
  x = (x | (x << 4)) & 0x030c30c3;
  return (x | (x << 2)) & 0x09249249;
}

/**
 * Returns triangles by halving lengths of their longest side, the largest first.
 *
 * Equal ones are there in blocks of neighbours from all over the mesh, so that the first chunks show all of it.
 */
export function trianglesLargestFirst(points: Float32Array, faces: Uint32Array): Uint32Array {
  const count = faces.length / 3;
  const sides = new Float32Array(count);
  for (let i = 0; i < count; i++) sides[i] = longestSide(points, faces, i);
  const most = sides.reduce((a, b) => Math.max(a, b), 0);
  const starts = new Uint32Array(CLASSES + 1);
  for (let i = 0; i < count; i++) starts[sizeClass(sides[i], most) + 1]++;
  for (let k = 0; k < CLASSES; k++) starts[k + 1] += starts[k];
  const order = new Uint32Array(count);
  for (const first of spreadBlocks(count)) {
    for (let i = first; i < Math.min(count, first + BLOCK); i++) order[starts[sizeClass(sides[i], most)]++] = i;
  }
  return order;
}

const BLOCK = 256;

/** Returns the first rows of blocks; each next one is a golden section of all blocks further on. */
function spreadBlocks(rows: number): number[] {
  const blocks = Math.ceil(rows / BLOCK);
  let step = Math.max(1, Math.round(0.618 * blocks));
  while (commonDivisor(step, blocks) > 1) step++;
  return Array.from({ length: blocks }, (_, k) => ((k * step) % blocks) * BLOCK);
}

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b));

function longestSide(points: Float32Array, faces: Uint32Array, i: number): number {
  let most = 0;
  for (let k = 0; k < 3; k++) {
    const [a, b] = [3 * faces[3 * i + k], 3 * faces[3 * i + ((k + 1) % 3)]];
    most = Math.max(
      most,
      Math.hypot(points[a] - points[b], points[a + 1] - points[b + 1], points[a + 2] - points[b + 2]),
    );
  }
  return most;
}
