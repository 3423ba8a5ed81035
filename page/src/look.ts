/** Colours that people with any colour vision can tell apart; all sRGB. */

/** Colours of the most frequent classes: any two, and each and `OTHER`, differ by 25 in CIELAB to any colour vision. */
export const CATEGORIES: readonly string[] = [
  "#737edb",
  "#f49777",
  "#ffd75a",
  "#975882",
  "#50dafc",
  "#606533",
  "#299e00",
  "#094083",
];

/** The colour of the classes that have none of their own. */
export const OTHER = "#b0b0b0";

/** The colour of objects without classes. */
export const PLAIN = "#8fa9c4";

/** Colours of drawn rays. */
export const HIT = "#cc3311";
export const MISS = "#8a8f98";

/** Colours of the objects that the last ray hits: the first, and the others' outlines. */
export const FIRST = "#ff8c00";
export const BEHIND = "#0077bb";

/** Stops of the continuous scale at equal distances: lightness rises all along. */
export const RAMP: readonly string[] = [
  "#440154",
  "#482878",
  "#3e4a89",
  "#31688e",
  "#26828e",
  "#1f9e89",
  "#35b779",
  "#6ece58",
  "#b5de2b",
  "#fde725",
];

/** Stops of the scale around 0, blue below and red above: lightness falls alike to both sides. */
export const DIVERGING: readonly string[] = ["#2c5fc4", "#5fb0d8", "#e0cc55", "#ee8a3c", "#b5171f"];

/** Returns the bytes of a colour written as "#rrggbb". */
export function rgb(hex: string): [number, number, number] {
  const value = Number.parseInt(hex.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

/** Returns a colour of three bytes as "#rrggbb". */
export function hexOf(bytes: readonly number[]): string {
  return `#${bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const STOPS = new Map([RAMP, DIVERGING].map((scale) => [scale, scale.map(rgb)]));

/** Returns the bytes of a continuous scale at a fraction; what is outside 0 to 1 is at the ends. */
export function ramp(fraction: number, scale = RAMP): [number, number, number] {
  const stops = STOPS.get(scale)!;
  const place = Math.min(1, Math.max(0, fraction || 0)) * (stops.length - 1);
  const k = Math.min(stops.length - 2, Math.floor(place));
  const mix = (a: number) => Math.round(stops[k][a] + (place - k) * (stops[k + 1][a] - stops[k][a]));
  return [mix(0), mix(1), mix(2)];
}
