/** Messages of page and server. Written by page/schema.py from raybox.viewer.messages; do not edit. */

export interface RayFields {
  origin: [number, number, number];
  direction: [number, number, number];
  t_min: number | null;
  t_max: number | null;
}
export interface PickRay {
  origin: [number, number, number];
  direction: [number, number, number];
  t_min: number | null;
  t_max: number | null;
  kind: "pick" | "picked";
  seq: number;
}
export interface PickRow { kind: "ray"; seq: number; row: number }
export interface SavedState { version: 1 }
export interface SavePage { kind: "save"; seq: number; state: SavedState }
export interface BeginUpload { kind: "upload"; seq: number; name: string; size: number }
export interface Camera {
  eye: [number, number, number];
  target: [number, number, number];
  up: "x" | "y" | "z";
  orthographic: boolean;
  height: number;
  fov: number;
}
export interface ByLabel { by: "label"; label: string }
export interface ByOther { by: "file" | "class" | "height" | "plain" }
export interface ViewFields {
  camera?: Camera;
  colour?: ByLabel | ByOther;
  selection?: number[];
  hide?: number[];
  show?: number[];
}
export interface Begin { kind: "begin"; session: string; version: string; view: ViewFields }
export interface Renumber { kind: "renumber"; runs: [number, number, number][] }
export interface ChangeView { kind: "view"; view: ViewFields }
export interface Progress { kind: "progress"; text: string; fraction: number }
export interface DrawPicture { kind: "picture"; scale: number }
export interface Failure { kind: "error"; text: string; seq: number | null }
export interface FileHeader { kind: "file"; seq: number; name: string }
export interface Uploaded { kind: "state"; seq: number; text: string }
export interface End { kind: "end"; text: string }
export interface HitsHeader {
  origin: [number, number, number];
  direction: [number, number, number];
  t_min: number | null;
  t_max: number | null;
  kind: "hits";
  seq: number;
  row: number | null;
  total: number;
}
export interface GeometryHeader {
  type: "boxes" | "mesh" | "instances" | "grid" | "planes";
  primitives: number;
  firstObject: number;
  objects: number;
  color: string | null;
}
export interface LabelHeader { name: string; words: string[] | null }
export interface SceneHeader {
  kind: "scene";
  name: string;
  credit: string;
  unit: string;
  up: "x" | "y" | "z";
  follow: string[];
  geometries: GeometryHeader[];
  labels: LabelHeader[];
  ids: string[] | null;
}
export interface RaysHeader { kind: "rays"; total: number; colors: [string | null, number][] }
export interface TableHeader { kind: "table"; total: number }
export interface PointsHeader { kind: "points"; fields: string[]; colors: [string | null, number][] }

export type Request = PickRay | PickRow | SavePage | BeginUpload;
export type Colors = [string | null, number][];
export type SceneFrame = SceneHeader | RaysHeader | TableHeader | PointsHeader;
export type AnswerFrame = HitsHeader | FileHeader | Uploaded | Failure;
export type ViewFrame = Begin | Renumber | ChangeView | Progress | DrawPicture | End;
export type FrameHeader = SceneHeader | RaysHeader | TableHeader | PointsHeader | HitsHeader | FileHeader | Uploaded | Failure | Begin | Renumber | ChangeView | Progress | DrawPicture | End;

export const MASK = 1;
export const UPLOAD_PART = 2;
export const PICTURE_PART = 3;
export const SELECTION = 4;
