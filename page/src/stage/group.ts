/** Rows by the group of each. */

/** The rows of all groups in turn, and the first of each group and the end. */
export interface Grouped {
  starts: Uint32Array;
  rows: Uint32Array;
}

/** Returns the rows by their groups, ascending within each. */
export function grouped(groupOf: Uint32Array, groups: number): Grouped {
  const starts = new Uint32Array(groups + 2);
  for (const group of groupOf) starts[group + 2]++;
  for (let k = 2; k < starts.length; k++) starts[k] += starts[k - 1];
  const rows = new Uint32Array(groupOf.length);
  groupOf.forEach((group, row) => (rows[starts[group + 1]++] = row));
  return { starts: starts.subarray(0, groups + 1), rows };
}

/** Returns the rows of one group. */
export function rowsOf({ starts, rows }: Grouped, group: number): Uint32Array {
  return rows.subarray(starts[group], starts[group + 1]);
}
