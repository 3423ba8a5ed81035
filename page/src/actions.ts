/** What the user can do with a scene: called by panels, shortcuts and clicks alike. */

import { later } from "./dom.ts";
import { Naming, type Coded } from "./labels.ts";
import { MOST_POINTS, snappedPoint } from "./measure.ts";
import type { Notice } from "./panel/notice.ts";
import { chosenHit } from "./selected.ts";
import { between, endOf, sightRay } from "./sight.ts";
import { halfSpaces, limitRay } from "./stage/cut.ts";
import { objectBounds } from "./stage/hull.ts";
import { along, AXES, middle, sub, unit } from "./stage/vec.ts";
import type { Store } from "./store.ts";
import { type Storey, storeysOf } from "./storeys.ts";
import type { Files } from "./panel/files.ts";
import type { StageApi } from "./stage/stage.ts";
import type { Answer, Axis, CameraState, Caster, CutPlane, Hit, Ray, Vec3 } from "./types.ts";
import { fromRanges, toRanges, visibilityOf } from "./visibility.ts";

/** The last ray is cast again this long after the last change of a filter or of the cut. */
const PAUSE = 80;

/** What an answer does to the selection. */
interface Choice {
  select: boolean;
  add: boolean;
}

const AS_IT_IS: Choice = { select: false, add: false };

/** What commands use of the page. */
export interface PageParts {
  readonly files: Files;
  find(): void;
  help(): void;
  explain(): void;
}

export class Actions {
  readonly naming: Naming;
  readonly storeys: readonly Storey[];
  /** Set once the panels are made. */
  page!: PageParts;
  /** A cast: only the answer of the last one is shown. */
  private casts = 0;
  private maskSent: boolean;
  /** Whether filters or the cut have changed since the last cast. */
  private outdated: boolean;
  /** The last cast, and the showing of its answer. */
  private running: Promise<unknown> = Promise.resolve();
  /** How to cast the last ray again. */
  private last: { call: () => Promise<Answer>; how: Choice } | null = null;
  private closed = false;
  /** The camera when the first floor plan was chosen. */
  private beforePlan: CameraState | null = null;
  private readonly recastLater = later(PAUSE, () => this.recast());

  constructor(
    readonly store: Store,
    readonly stage: StageApi,
    readonly caster: Caster,
    readonly notice: Notice,
  ) {
    this.naming = new Naming(store.model);
    this.storeys = storeysOf(store.model);
    this.maskSent = caster.live && this.isStart();
    this.outdated = !this.maskSent;
    if (this.outdated) this.recastLater();
  }

  /** Whether rays hit what they hit at the start: a server starts so, and casts no ray twice then. */
  isStart(): boolean {
    const { hiddenAtStart } = this.store.model;
    if (Object.keys(this.store.state.ranges).length) return false;
    return this.store.visibility.pickable.every((byte, object) => byte !== (hiddenAtStart?.[object] ?? 0));
  }

  /** Another scene is shown: answers that are on their way come to nothing. */
  close(): void {
    this.closed = true;
    this.casts++;
  }

  // ---- rays

  /** Cast the ray of a click; what it hits first is selected, or added to the selection. */
  async pick(ray: Ray, add = false): Promise<void> {
    if (this.store.state.measure) return this.measureAt(ray);
    const whole = { ...ray, tMin: 0, tMax: Infinity };
    const answer = await this.cast(() => this.castWithinCut(whole), { select: true, add });
    if (answer && this.store.state.sight) await this.setSightEnd(answer);
  }

  /** Whether clicks set the ends of a line of sight. */
  setSight(on: boolean): void {
    this.store.set({ sight: on ? [] : null, measure: null });
  }

  /** Whether clicks set the points that are measured. */
  setMeasuring(on: boolean): void {
    this.store.set({ measure: on ? [] : null, sight: null });
  }

  /** Measure the point that a click hits first; after the last point a new line begins. */
  private async measureAt(ray: Ray): Promise<void> {
    const { notice, stage, store } = this;
    const shown = { pixelOf: (point: Vec3) => stage.pixelOf(point), spaces: halfSpaces(store.state.cut) };
    try {
      this.sendMask();
      const point = snappedPoint(store.model, await this.castWithinCut(ray), shown);
      const { measure } = store.state;
      if (!point) notice.info("Measured points are on objects; this click hits none.");
      else if (measure) store.set({ measure: measure.length < MOST_POINTS ? [...measure, point] : [point] });
    } catch (error) {
      notice.error(textOfError(error));
    }
  }

  /** Take back the last of what clicks do: the measured points, the tool, the selection, the ray. */
  escape(): void {
    const { measure, selection } = this.store.state;
    if (measure) this.setMeasuring(measure.length > 0);
    else if (selection.length) this.select([]);
    else this.clearRay();
  }

  /** Take what a click hits first as an end; the second end casts the ray between them. */
  private async setSightEnd(answer: Answer): Promise<void> {
    const [from] = this.store.state.sight!;
    const end = endOf(answer);
    if (!end) return this.notice.info("A line of sight ends on objects; this click hits none.");
    this.store.set({ sight: from ? [] : [end] });
    if (!from) return;
    const ray = sightRay(from, end);
    if (!ray.direction.some(Boolean)) return this.notice.error("The ends of a line of sight must be two points.");
    const ends = [from.object, end.object];
    await this.cast(async () => between(await this.castWithinCut(ray), ends), { select: true, add: false });
  }

  /** Cast a row of the ray table. */
  async pickRow(row: number): Promise<void> {
    await this.cast(() => this.caster.row(row), { select: true, add: false });
  }

  /** Show an answer to a ray that Python casts. */
  show(answer: Answer): void {
    this.casts++;
    this.last = { call: () => this.castWithinCut(answer.ray), how: AS_IT_IS };
    this.present(answer, { select: true, add: false });
  }

  /** Filters have changed: what can be hit is sent, and the last ray cast again, soon. */
  filtersChanged(): void {
    this.maskSent = false;
    this.cutChanged();
  }

  /** Section planes have changed: cast the last ray again, soon. */
  cutChanged(): void {
    this.outdated = true;
    this.recastLater();
  }

  /** Cast the last ray again, unless one was cast since the last change. */
  private async recast(): Promise<void> {
    if (this.closed || this.caster.reason !== null || !this.outdated) return;
    this.sendMask();
    if (this.last) await this.cast(this.last.call, this.last.how);
  }

  /** Resolves once the last ray is cast with the filters and the cut as they are. */
  async settled(): Promise<void> {
    await this.recast();
    await this.running;
  }

  /** Cast the ray of a restored view. */
  async restoreRay(): Promise<void> {
    const { ray } = this.store.state;
    if (!ray || this.caster.reason !== null) return;
    const { origin, direction, row } = ray;
    const whole = { origin, direction, tMin: 0, tMax: Infinity };
    await this.cast(() => (row === null ? this.castWithinCut(whole) : this.caster.row(row)), AS_IT_IS);
  }

  /** Cast the part of a ray that the section planes leave; where they leave nothing, nothing is hit. */
  private async castWithinCut(ray: Ray): Promise<Answer> {
    const left = this.limited(ray);
    if (left) return this.caster.pick(left);
    return { ray: { ...ray, tMax: ray.tMin }, hits: [], total: 0, row: null };
  }

  /** The part of a ray that the section planes leave; null if they leave nothing. */
  private limited(ray: Ray): Ray | null {
    return limitRay(ray, halfSpaces(this.store.state.cut));
  }

  /** Cast a ray whose numbers were typed, within the cut. */
  async castTyped(origin: Vec3, direction: Vec3): Promise<void> {
    if (!direction.some(Boolean)) return this.notice.error("A direction must have a number other than 0.");
    const ray = this.limited({ origin, direction, tMin: 0, tMax: Infinity });
    if (ray) await this.pick(ray);
    else this.notice.info("The cut leaves nothing of this ray.");
  }

  /** Show an answer and return it; null if there is none, or if another ray has been cast. */
  private cast(call: () => Promise<Answer>, how: Choice): Promise<Answer | null> {
    const running = this.answered(call, how);
    this.running = running;
    return running;
  }

  private async answered(call: () => Promise<Answer>, how: Choice): Promise<Answer | null> {
    const number = ++this.casts;
    this.last = { call, how };
    this.outdated = false;
    try {
      if (this.caster.reason !== null) throw new Error(this.caster.reason);
      this.sendMask();
      const answer = await call();
      if (number !== this.casts) return null;
      this.last.how = AS_IT_IS;
      this.present(answer, how);
      return answer;
    } catch (error) {
      if (number === this.casts) this.notice.error(textOfError(error));
      return null;
    }
  }

  private sendMask(): void {
    if (this.maskSent) return;
    this.caster.setPickable(this.store.visibility.pickable);
    this.maskSent = true;
  }

  private present(answer: Answer, { select, add }: Choice): void {
    const { origin, direction } = answer.ray;
    const first = answer.hits.at(0)?.object;
    const ray = answer.ends ? null : { origin, direction, row: answer.row };
    const { answer: before, rayCount } = this.store.state;
    this.store.set({ answer, ray, rayCount: rayCount + Number(select || !before) });
    if (!select) return;
    if (first === undefined) {
      if (!add) this.select([]);
    } else if (add) this.toggleSelected(first);
    else this.select([first]);
  }

  clearRay(): void {
    this.casts++;
    this.last = null;
    this.store.set({ answer: null, ray: null, sight: this.store.state.sight && [] });
  }

  /** Choose a hit of the last answer: its object is selected. */
  choose({ object, primitive }: Hit): void {
    this.store.set({ selection: [object], contact: primitive });
  }

  chooseNext(step: number): void {
    const hits = this.store.state.answer?.hits ?? [];
    const chosen = chosenHit(this.store);
    const at = chosen ? hits.indexOf(chosen) + step : 0;
    if (hits.length) this.choose(hits[Math.min(hits.length - 1, Math.max(0, at))]);
  }

  // ---- selection

  select(objects: number[]): void {
    this.store.set({ selection: objects });
    if (!objects.length) this.store.set({ faded: false });
  }

  toggleSelected(object: number): void {
    const { selection } = this.store.state;
    const others = selection.filter((one) => one !== object);
    this.select(others.length < selection.length ? others : [...selection, object]);
  }

  /** Zoom to objects with the others faded, so that what is inside something shows; hidden ones stay hidden. */
  zoomTo(objects: number[]): void {
    if (!objects.length) return;
    const { shown } = this.store.visibility;
    const faded = objects.length < this.store.model.objects && objects.some((object) => shown[object]);
    this.store.set({ selection: objects, faded });
    this.stage.fitObjects(objects);
  }

  // ---- filters

  /** Hide or show objects: a selection, or those of a class. */
  setHidden(objects: Iterable<number>, on: boolean): void {
    this.store.filter({ hidden: this.changed(this.store.state.hidden, objects, on) });
  }

  setUnpickable(objects: Iterable<number>, on: boolean): void {
    this.store.filter({ unpickable: this.changed(this.store.state.unpickable, objects, on) });
  }

  private changed(ranges: number[], objects: Iterable<number>, on: boolean): number[] {
    const bytes = fromRanges(ranges, this.store.model.objects);
    for (const object of objects) bytes[object] = on ? 1 : 0;
    return toRanges(bytes);
  }

  /** Hide all others. */
  isolate(objects: Iterable<number>): void {
    const bytes = new Uint8Array(this.store.model.objects).fill(1);
    for (const object of objects) bytes[object] = 0;
    this.store.filter({ hidden: toRanges(bytes) });
  }

  /** Take away every filter: also what is hidden at the start and ranges. */
  showAll(): void {
    this.store.filter({ hidden: [], unpickable: [], ranges: {} });
  }

  /** Whether anything is hidden, or passed by rays. */
  isFiltered(): boolean {
    return this.store.visibility.pickable.includes(0) || Object.keys(this.store.state.ranges).length > 0;
  }

  /** Filters as at the start: spaces and openings of a building are hidden again. */
  resetFilters(): void {
    const { hiddenAtStart } = this.store.model;
    this.store.filter({ hidden: hiddenAtStart ? toRanges(hiddenAtStart) : [], unpickable: [], ranges: {} });
  }

  hideSelection(): void {
    const { selection } = this.store.state;
    if (!selection.length) return;
    this.setHidden(selection, true);
    this.select([]);
  }

  /** Show the selection: ranges that hide some of it go. */
  showSelection(): void {
    const { model, state } = this.store;
    const leaves = ([name, range]: [string, [number, number]]) => {
      const { shown } = visibilityOf(model, { hidden: [], unpickable: [], ranges: { [name]: range } });
      return state.selection.every((object) => shown[object]);
    };
    const ranges = Object.fromEntries(Object.entries(state.ranges).filter(leaves));
    this.store.filter({ hidden: this.changed(state.hidden, state.selection, false), ranges });
  }

  isolateSelection(): void {
    const { selection } = this.store.state;
    if (selection.length) this.isolate(selection);
  }

  toggleSelectionPickable(): void {
    const { selection } = this.store.state;
    if (selection.length) this.setUnpickable(selection, !this.isSelectionPassed());
  }

  /** Whether rays pass through all that is selected. */
  isSelectionPassed(): boolean {
    const { selection } = this.store.state;
    const { unpickable } = this.store.visibility;
    return selection.length > 0 && selection.every((object) => unpickable[object]);
  }

  setRange(label: string, range: [number, number] | null): void {
    const { [label]: _, ...others } = this.store.state.ranges;
    this.store.filter({ ranges: range ? { ...others, [label]: range } : others }, `range of ${label}`);
  }

  // ---- camera and cut

  fitSelection(): void {
    const { selection } = this.store.state;
    if (selection.length) this.stage.fitObjects(selection);
    else this.stage.fitAll();
  }

  setCamera(change: Partial<CameraState>): void {
    this.stage.setCamera({ ...this.stage.camera(), ...change });
    this.store.set({ camera: this.stage.camera() });
  }

  toggleOrthographic(): void {
    this.setCamera({ orthographic: !this.stage.camera().orthographic });
  }

  setUp(up: Axis): void {
    this.setCamera({ up });
    this.stage.standardView("iso");
  }

  /** Show the floor plan of a storey; null shows all as it was seen before. */
  showStorey(storey: Storey | null): void {
    const { model } = this.store;
    const isPlan = this.storey !== null;
    if (!isPlan) this.beforePlan = this.stage.camera();
    this.cutTo(model.up, storey && [-Infinity, storey.at]);
    if (storey || !this.beforePlan) {
      this.setCamera({ orthographic: storey !== null, up: model.up });
      this.stage.standardView(storey ? "top" : "iso");
    } else if (isPlan) this.setCamera(this.beforePlan);
  }

  /** The storey whose floor plan is cut. */
  get storey(): Storey | null {
    const [, top] = this.store.sectionOf(this.store.model.up);
    return this.storeys.find(({ at }) => at === top) ?? null;
  }

  /** Go some storeys up, from the highest to all of them. */
  stepStorey(step: number): void {
    const choices = [null, ...this.storeys];
    if (this.storeys.length) this.showStorey(choices.at((choices.indexOf(this.storey) + step) % choices.length)!);
  }

  /** Leave what is between two coordinates on an axis, or all of it; an end of the scene or past it needs no plane. */
  cutTo(axis: Axis, range: [number, number] | null): void {
    const others = this.store.state.cut.filter((plane) => plane.axis !== axis);
    const [low, high] = this.store.model.bounds.map((corner) => corner[AXES.indexOf(axis)]);
    const [from, to] = range ?? [low, high];
    const lower: CutPlane[] = from > low ? [{ axis, on: true, at: from, flip: true }] : [];
    const upper: CutPlane[] = to < high ? [{ axis, on: true, at: to, flip: false }] : [];
    this.store.set({ cut: [...others, ...lower, ...upper] });
  }

  cutAroundSelection(): void {
    const { model, state } = this.store;
    const { lower, upper } = objectBounds(model, state.selection);
    AXES.forEach((axis, a) => this.cutTo(axis, lower[a] <= upper[a] ? [lower[a], upper[a]] : null));
  }

  /** Change the free plane; it is made in the middle of the scene, across the line of sight, at its first use. */
  setFreeCut(change: Partial<CutPlane>): CutPlane {
    const { freePlane, model, state } = this.store;
    const [lower, upper] = model.bounds;
    const first = { point: middle({ lower, upper }), normal: this.towardsCamera() };
    const plane: CutPlane = { ...(freePlane ?? { axis: "free", on: false, at: 0, flip: false, ...first }), ...change };
    this.store.set({ cut: [...state.cut.filter(({ axis }) => axis !== "free"), plane] });
    return plane;
  }

  /** Turn the free plane across the line of sight. */
  faceCut(): void {
    this.setFreeCut({ on: true, normal: this.towardsCamera(), flip: false });
  }

  /** The free plane cuts away what is nearer. */
  private towardsCamera(): Vec3 {
    const { eye, target } = this.stage.camera();
    return unit(sub(eye, target)).map((value) => Number(value.toFixed(3))) as Vec3;
  }

  // ---- copies

  async copy(text: string, what: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(text);
      this.notice.info(`${what} copied`);
    } catch {
      this.notice.info(`${what}: ${text}`);
    }
  }

  /** Copy a part of the chosen hit. */
  copyHit(what: "id" | "point" | "t"): void {
    const hit = chosenHit(this.store);
    if (!hit) return;
    const { ray } = this.store.state.answer!;
    const point = along(ray.origin, ray.direction, hit.t).map(String).join(", ");
    const text = { id: this.naming.id(hit.object), point, t: String(hit.t) }[what];
    void this.copy(text, what);
  }
}

/** The objects of one word of a label, among `within` if given. */
export function objectsOf({ codes }: Coded, code: number, within?: ArrayLike<number>): number[] {
  const objects: number[] = [];
  const size = within?.length ?? codes.length;
  for (let at = 0; at < size; at++) {
    const object = within ? within[at] : at;
    if (codes[object] === code) objects.push(object);
  }
  return objects;
}

export function textOfError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
