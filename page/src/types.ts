/** The contract between the parts of the page: what a scene is, what a ray hits, what the page's state is. */

import type { ByLabel, ByOther, Camera, Colors } from "./schema.ts";
import type { PropertyReader } from "./properties.ts";

export type Vec3 = [number, number, number];
export type Numbers = Float64Array | Float32Array | Uint32Array | Int32Array | Uint16Array | Uint8Array;

// ---- a scene, as the frames give it (model.ts makes it; all else reads it)

interface GeometryBase {
  /** Number of the first object of this geometry among those of the scene. */
  firstObject: number;
  objects: number;
  primitives: number;
  /** "#rrggbb", where Python gave all objects one colour. */
  color?: string | null;
  /** The file's colour of each primitive, of a grid of each object: its row of the scene's palette, 0 for none. */
  paletteRows?: PaletteRows | null;
}

export type PaletteRows = Uint8Array | Uint16Array;

export interface BoxesGeometry extends GeometryBase {
  type: "boxes";
  /** Rows of three. */
  lower: Float64Array;
  upper: Float64Array;
}

export interface MeshGeometry extends GeometryBase {
  type: "mesh";
  vertices: Float64Array;
  faces: Uint32Array;
  /** The object of each triangle, counted within this geometry. */
  triangleObjects: Uint32Array;
  /** Pairs of vertices of sharp edges. */
  edges: Uint32Array;
}

export interface InstancesGeometry extends GeometryBase {
  type: "instances";
  /** Rows of twelve: the first three rows of each copy's matrix. */
  transforms: Float64Array;
  base: BoxesGeometry | MeshGeometry;
}

export interface GridGeometry extends GeometryBase {
  type: "grid";
  edges: [Float64Array, Float64Array, Float64Array];
  /** One bit a cell in C order; null where all cells are occupied. */
  occupied: Uint8Array | null;
  /** The cell of each object, ascending; null where the grid is one object. */
  cells: Float64Array | null;
  /** Objects with a free face, which are drawn; null where the outline alone is drawn. */
  visible: Uint32Array | null;
}

export interface PlanesGeometry extends GeometryBase {
  type: "planes";
  /** Those nearest to the origin, rounded. */
  points: Float64Array;
  /** The points p of a plane have normal · p = offset. */
  normals: Float64Array;
  offsets: Float64Array;
}

export type Geometry = BoxesGeometry | MeshGeometry | InstancesGeometry | GridGeometry | PlanesGeometry;

/** Codes are numbers of words; any other code is a missing value. */
export type Label =
  | { name: string; kind: "class"; words: string[]; codes: Uint32Array }
  | { name: string; kind: "number"; values: Float64Array }
  | { name: string; kind: "text"; values: (string | null)[] };

export interface SceneModel {
  name: string;
  title: string;
  credit: string;
  /** Of lengths: "m", "ft" and the like, or empty where no file states one. */
  unit: string;
  /** The axis that is up in the first view. */
  up: Axis;
  /** Coordinates are drawn in float32 relative to this point. */
  shift: Vec3;
  bounds: [Vec3, Vec3];
  objects: number;
  geometries: Geometry[];
  /** Colours that the file states, four bytes each, of which the first is no colour; null without any. */
  palette?: Uint8Array | null;
  labels: Label[];
  ids: string[] | null;
  /** Returns the property sets of an object; null where no object has any. */
  properties: PropertyReader | null;
  /** Names of the labels that name objects, class them (tree, first colours), and give their storey. */
  names: string | null;
  classes: string | null;
  levels: string | null;
  /** One byte an object: 1 is hidden at the start. */
  hiddenAtStart: Uint8Array | null;
  offline: "exact" | "none";
  offlineReason: string;
  rays: RaySample | null;
  table: RayTable | null;
  points: PointCloud | null;
}

/** The rays that are drawn: an even sample of all. */
export interface RaySample {
  total: number;
  row: Uint32Array;
  origin: Float64Array;
  direction: Float64Array;
  tMin: Float64Array;
  tMax: Float64Array;
  colors?: Colors;
}

/** Every ray of the file or call; t counts in lengths of the direction. */
export interface RayTable {
  total: number;
  /** +inf for a miss. */
  t: Float64Array;
  /** -1 for a miss. */
  object: Int32Array;
  /** t as a length in the scene's unit; +inf for a miss. */
  distance: Float64Array;
}

export interface PointCloud {
  xyz: Float64Array;
  /** Measured, along its ray. */
  distance: Float64Array;
  /** The row of its ray in the table; -1 without one. */
  ray: Int32Array;
  /** Such as intensity, time and ring, by the names that files give them. */
  fields: { name: string; values: Float64Array }[];
  colors?: Colors;
}

// ---- rays and answers

export interface Ray {
  origin: Vec3;
  direction: Vec3;
  tMin: number;
  tMax: number;
}

export interface Hit {
  /** Number among all objects of the scene. */
  object: number;
  geometry: number;
  primitive: number;
  t: number;
  tEnter: number;
  tExit: number;
}

/** What one ray hits, in the engine's order: (t, geometry, index). */
export interface Answer {
  ray: Ray;
  hits: Hit[];
  total: number;
  /** Row of the ray table, if the ray is one of it. */
  row: number | null;
  /** Of a line of sight: the objects at its ends, which are not among the hits. */
  ends?: number[];
}

export interface Explanation {
  text: string;
  axes: { axis: string; lower: string; upper: string; near: string; far: string }[];
  verdict: string;
  t: string;
}

/** Who answers rays: the server, or the page itself. */
export interface Caster {
  readonly live: boolean;
  /** Why rays are not answered; null if they are. */
  readonly reason: string | null;
  pick(ray: Ray, row?: number): Promise<Answer>;
  row(row: number): Promise<Answer>;
  /** One byte an object: 1 can be hit. */
  setPickable(pickable: Uint8Array): void;
  /** Returns the bytes of the saved page. */
  save(state: ViewState): Promise<{ name: string; content: Uint8Array }>;
  /** Returns what is to be said of what was opened. */
  upload(file: File, progress: (fraction: number) => void): Promise<string>;
}

// ---- the state of a view: in the link, in saved pages; plain JSON

export type Axis = "x" | "y" | "z";

/** A section plane: what lies on the side of its normal is cut away, rays too. An axis has two at most, one of them flipped. */
export interface CutPlane {
  axis: Axis | "free";
  on: boolean;
  /** For an axis: the coordinate; free: a point of the plane. */
  at: number;
  point?: Vec3;
  normal?: Vec3;
  flip: boolean;
}

/** `height` is that of the picture in scene units at the target. */
export type CameraState = Camera;
export type ColourBy = ByLabel | ByOther;
export type RayColour = "status" | "distance" | "object";

export interface RaysView {
  hits: boolean;
  misses: boolean;
  points: boolean;
  colour: RayColour;
}

export interface PointsView {
  /** "distance", "residual" (cast minus measured), or the name of a field. */
  colour: string;
  /** Pixels of the page. */
  size: number;
  /** The end of the scale of residuals; null is chosen by the page. */
  limit: number | null;
}

/** Objects as ranges [first, last, first, last, …], or as words of a label and ranges of those that differ from it. */
export type ObjectSet = number[] | { label: string; words: string[]; except: number[] };

/** What the user changes; controls.ts says of each part how it starts, is checked, drawn and changed. */
export interface View {
  camera: CameraState | null;
  /** Ranges of objects: [first, last, first, last, …]. */
  hidden: number[];
  unpickable: number[];
  /** Of number labels, and of fields of points by `rangeOf`: what is outside is hidden. */
  ranges: Record<string, [number, number]>;
  /** 0 to 1 for words of the class label. */
  opacity: Record<string, number>;
  colour: ColourBy;
  edges: boolean;
  /** Whether the legend is over the scene, and how far it was dragged, in pixels. */
  legend: { on: boolean; x: number; y: number };
  cut: CutPlane[];
  /** The points that are measured, three at most; null while clicks measure nothing. */
  measure: Vec3[] | null;
  selection: number[];
  /** The others are translucent, so that what is inside shows. */
  faded: boolean;
  rays: RaysView;
  points: PointsView;
  /** The last ray cast, to be cast again. */
  ray: { origin: Vec3; direction: Vec3; row: number | null } | null;
  dark: boolean;
  /** Pixels of a saved picture for one of the page, along each axis. */
  pictureScale: number;
}

/** The view as links and saved pages contain it. */
export interface ViewState extends Omit<View, "hidden" | "unpickable"> {
  version: 1;
  /** Name and size of the scene that it belongs to; of any scene if absent. */
  scene?: string;
  hidden: ObjectSet;
  unpickable: ObjectSet;
}

// ---- the drawing, as the panels use it

/** Colour and visibility of all objects; drawn as they are here. */
export interface Look {
  /** Four bytes an object: red, green, blue in sRGB, opacity (0 is not drawn). */
  rgba: Uint8Array;
  /** Whether primitives have the colours of the file, where it states any. */
  byFile?: boolean;
}

export type StandardView = "front" | "back" | "left" | "right" | "top" | "bottom" | "iso";

export interface StageEvents {
  /** A click or tap: the exact ray of the pixel, limited by the cut. */
  pick(ray: Ray, modifiers: { add: boolean }): void;
  /** A drawn ray was clicked: its row. */
  pickRow(row: number): void;
  cameraChanged(camera: CameraState): void;
  /** The free plane was dragged. */
  cutChanged(planes: CutPlane[]): void;
}

export interface DrawnStats {
  drawCalls: number;
  bufferBytes: number;
  frames: number;
  complete: boolean;
  renderer: string;
}

/** What the stage draws of the state. */
export interface Drawing {
  look: Look | null;
  edges: boolean;
  cut: CutPlane[];
  faded: boolean;
  highlight: number[];
  measure: Vec3[] | null;
  /** The ray last cast with marks at each t. */
  answer: Answer | null;
  /** Of the drawn rays: four bytes of colour each, and the t of their hits, +inf for a miss. */
  rays: { sample: RaySample; rgba: Uint8Array; times: Float64Array } | null;
  /** Four bytes of colour a point. */
  points: Uint8Array | null;
  /** Pixels of the page. */
  pointSize: number;
  dark: boolean;
}

export interface LegendEntry {
  text: string;
  /** CSS colour, or those of a continuous scale; of a remark none. */
  colours: string[];
  count?: number;
}
