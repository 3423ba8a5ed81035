/** The one state of a view: panels read it, actions change it, watchers follow it. */

import { packSet } from "./object_set.ts";
import { sceneKey } from "./checks.ts";
import { PARTS } from "./controls.ts";
import type { SightEnd } from "./sight.ts";
import { AXES } from "./stage/vec.ts";
import type { Answer, Axis, CutPlane, SceneModel, View, ViewState } from "./types.ts";
import { visibilityOf, type Filters, type Visibility } from "./visibility.ts";

/** The view and what only this page has. */
export interface PageState extends View {
  answer: Answer | null;
  /** The primitive of the selected object whose contact is chosen; -1 for the first. */
  contact: number;
  /** Ends of the line of sight that clicks have set; null if clicks set none. */
  sight: SightEnd[] | null;
  /** Steps that `undo` can take back. */
  undoable: number;
  /** Counts the rays that were shown, each once, however often it was cast again. */
  rayCount: number;
  /** Counts the tables of rays that came: filters change what rays hit. */
  table: number;
}

type Key = keyof PageState;
const FILTERS = ["hidden", "unpickable", "ranges"] as const;
const STEPS = 100;

export class Store {
  private now: PageState;
  private readonly watchers: { keys: readonly Key[]; act: () => void }[] = [];
  private readonly past: { filters: Filters; step: string }[] = [];
  private cached: { filters: Filters; visibility: Visibility } | null = null;

  constructor(
    public model: SceneModel,
    start: View,
  ) {
    this.now = { ...start, answer: null, contact: -1, sight: null, undoable: 0, rayCount: 0, table: 0 };
  }

  get state(): Readonly<PageState> {
    return this.now;
  }

  /** Change parts of the state; each watcher of a changed part is called once. */
  set(given: Partial<PageState>): void {
    const changes = given.selection ? { contact: -1, ...given } : given;
    const changed = (Object.keys(changes) as Key[]).filter((key) => this.now[key] !== changes[key]);
    if (!changed.length) return;
    this.now = { ...this.now, ...changes };
    for (const { keys, act } of [...this.watchers]) if (keys.some((key) => changed.includes(key))) act();
  }

  /** Take the same scene with another table of rays, or again after a reconnect. */
  update(model: SceneModel): void {
    this.model = model;
    this.set({ table: this.now.table + 1 });
  }

  /** Call `act` now and after each change of these parts. */
  watch(keys: readonly Key[], act: () => void): void {
    this.changed(keys, act);
    act();
  }

  /** Call `act` after each change of these parts. */
  changed(keys: readonly Key[], act: () => void): void {
    this.watchers.push({ keys, act });
  }

  /** What is drawn and what rays can hit under the present filters. */
  get visibility(): Visibility {
    const { hidden, unpickable, ranges } = this.now;
    const same = this.cached && FILTERS.every((key) => this.cached!.filters[key] === this.now[key]);
    if (!same) {
      const filters = { hidden, unpickable, ranges };
      this.cached = { filters, visibility: visibilityOf(this.model, filters) };
    }
    return this.cached!.visibility;
  }

  /** Change filters so that `undo` can take it back; the same named step again is one step. */
  filter(changes: Partial<Filters>, step = ""): void {
    const { hidden, unpickable, ranges } = this.now;
    if (!step || this.past.at(-1)?.step !== step) this.past.push({ filters: { hidden, unpickable, ranges }, step });
    if (this.past.length > STEPS) this.past.shift();
    this.set({ ...changes, undoable: this.past.length });
  }

  undo(): void {
    const last = this.past.pop();
    if (last) this.set({ ...last.filters, undoable: this.past.length });
  }

  /** The part that links and saved pages contain. */
  view(): ViewState {
    const { hidden, unpickable } = this.now;
    const view = Object.fromEntries(PARTS.map((part) => [part, this.now[part]])) as unknown as View;
    return {
      version: 1,
      ...view,
      scene: sceneKey(this.model),
      hidden: packSet(this.model, hidden),
      unpickable: packSet(this.model, unpickable),
    };
  }

  get freePlane(): CutPlane | undefined {
    return this.now.cut.find(({ axis }) => axis === "free");
  }

  /** The coordinates on an axis between which the section planes leave the scene; its ends where there is no plane. */
  sectionOf(axis: Axis): [number, number] {
    const a = AXES.indexOf(axis);
    const at = (flip: boolean) => this.now.cut.find((plane) => plane.axis === axis && plane.on && plane.flip === flip)?.at;
    return [at(true) ?? this.model.bounds[0][a], at(false) ?? this.model.bounds[1][a]];
  }
}
