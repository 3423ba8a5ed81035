/** The rays of the file or call: which are drawn, in what colours, and the table of them all. */

import type { Actions } from "../actions.ts";
import { colouring } from "../colouring.ts";
import { choice, el, replace } from "../dom.ts";
import { count, distanceTitle, short } from "../format.ts";
import { drawPoints, insideRanges, measuredOf } from "../points.ts";
import { drawRays, hitTimes, isHit } from "../rays.ts";
import type { LegendEntry, RayColour, RaysView, SceneModel } from "../types.ts";
import { button } from "./command.ts";
import { legendRows } from "./legend.ts";
import { pointControls } from "./points.ts";
import { VirtualTable, type Column } from "./table.ts";

const COLOURS: { value: RayColour; text: string }[] = [
  { value: "status", text: "by hit or miss" },
  { value: "distance", text: "by distance" },
  { value: "object", text: "by object" },
];

const KINDS = ["hits", "misses", "points"] as const;
type Kind = (typeof KINDS)[number];

/** A saved page casts one ray at once: all of them would take minutes. */
const AS_SAVED = "The table has the hits of the time of saving: what you hide here does not change it.";

export class Rays {
  readonly element: HTMLElement;
  private readonly summary = el("p", { class: "summary", "data-test": "rays-summary" });
  private readonly note = el("p", { class: "note line", "data-test": "rays-note" });
  private readonly legend = el("div", { class: "legend", "data-test": "rays-legend" });
  private readonly colour: HTMLSelectElement;
  private readonly toggles: Record<Kind, HTMLElement>;
  private readonly table: VirtualTable | null;
  /** The rows of the table that ranges of points leave; all if undefined. */
  private inside: Uint8Array | undefined;

  constructor(
    private readonly actions: Actions,
    private readonly changed: (legend: LegendEntry[]) => void,
  ) {
    const { model } = actions.store;
    const toggles = KINDS.map((kind) => [kind, button(actions, `rays-${kind}`)]);
    this.toggles = Object.fromEntries(toggles) as Record<Kind, HTMLElement>;
    this.colour = choice("colour rays by", "rays-colour", COLOURS, (colour) =>
      this.set({ colour: colour as RayColour }),
    );
    this.table = model.rays || model.table ? this.makeTable() : null;
    const colour = model.table && model.rays && this.colour;
    const bar = el("div", { class: "bar" }, ...KINDS.map((kind) => this.toggles[kind]), colour);
    const points = model.points && pointControls(actions);
    const table = this.table && el("div", { class: "fill" }, this.table.element);
    const saved = !actions.caster.live && model.table && el("p", { class: "note", "data-test": "rays-saved" }, AS_SAVED);
    this.element = el("div", { class: "panel rays" }, this.summary, this.note, saved, bar, points, this.legend, table);
    actions.store.watch(["rays", "points", "table", "colour", "ranges"], () => this.draw());
    actions.store.watch(["table", "ranges"], () => this.fill());
    actions.store.watch(["answer"], () => this.reveal());
  }

  private set(change: Partial<RaysView>): void {
    this.actions.store.set({ rays: { ...this.actions.store.state.rays, ...change } });
  }

  private draw(): void {
    const { store, stage } = this.actions;
    const { model, state } = store;
    this.summary.textContent = summaryOf(model);
    this.colour.value = state.rays.colour;
    const there = kinds(model);
    for (const kind of KINDS) this.toggles[kind].hidden = !there[kind];
    const inside = insideRanges(state.ranges, model);
    this.inside = inside?.rays;
    const drawn = model.rays && drawRays(model, model.rays, state.rays, colouring(model, state.colour), this.inside);
    const rays = drawn && { sample: model.rays!, rgba: drawn.rgba, times: hitTimes(model, model.rays!) };
    const points = model.points && state.rays.points ? drawPoints(model, state.points, inside?.points ?? null) : null;
    stage.draw({ rays, points: points && points.rgba });
    this.note.textContent = noteOf(model, this.inside);
    const entries = [...(drawn?.legend ?? []), ...(points?.legend ?? [])];
    replace(this.legend, ...legendRows(entries));
    this.changed(entries);
  }

  /** All rays, also those that are not drawn. */
  private fill(): void {
    const { rays, table } = this.actions.store.model;
    const rows = Uint32Array.from({ length: table?.total ?? rays?.total ?? 0 }, (_, row) => row);
    this.table?.fill(this.inside ? rows.filter((row) => this.inside![row]) : rows);
  }

  private makeTable(): VirtualTable {
    const { store } = this.actions;
    return new VirtualTable({
      label: "rays",
      test: "rays-table",
      columns: this.columns(),
      choose: (row) => void this.actions.pickRow(row),
      chosen: (row) => row === store.state.answer?.row,
    });
  }

  private columns(): Column[] {
    const { naming, store } = this.actions;
    const object = (row: number) => store.model.table!.object[row];
    const distance = (row: number) => store.model.table!.distance[row];
    const name = (row: number) => (isHit(store.model, row) ? naming.full(object(row)) : "");
    const status = (row: number) => (isHit(store.model, row) ? "hit" : "miss");
    const index: Column = { title: "ray", width: 76, numeric: true, text: count, key: (row) => row };
    if (!store.model.table) return [index];
    return [
      index,
      { title: "hit", width: 1, text: status, key: status },
      { title: distanceTitle(store.model), width: 76, numeric: true, text: (row) => distanceText(distance(row)), key: distance },
      ...this.measured(),
      { title: "object", width: 4, text: name, key: name },
    ];
  }

  /** The distance that a scan has measured, next to the one of the hit. */
  private measured(): Column[] {
    const { points, table } = this.actions.store.model;
    if (!points?.ray.some((row) => row >= 0)) return [];
    const measured = measuredOf(points, table!.total);
    const tip = "the distance of the point that the scan has there";
    return [{ title: "measured", tip, width: 76, numeric: true, text: (row) => distanceText(measured[row]), key: (row) => measured[row] }];
  }

  private reveal(): void {
    const row = this.actions.store.state.answer?.row ?? null;
    this.table?.draw();
    if (row !== null) this.table?.reveal(row);
  }
}

function distanceText(distance: number): string {
  return Number.isFinite(distance) ? short(distance) : "";
}

/** Which toggles have an effect. */
function kinds(model: SceneModel): Record<Kind, boolean> {
  const both = model.table !== null;
  const hits = both && model.table!.object.some((object) => object >= 0);
  const misses = both && model.table!.object.some((object) => object < 0);
  return { hits, misses, points: model.points !== null };
}

function summaryOf({ rays, points }: SceneModel): string {
  if (!rays) return points ? `${count(points.distance.length)} points` : "";
  const total = rays.total === 1 ? "1 ray" : `${count(rays.total)} rays`;
  return rays.row.length < rays.total ? `${total}; at most ${count(rays.row.length)} drawn` : total;
}

function noteOf({ table, points }: SceneModel, inside?: Uint8Array): string {
  const hits = table?.object.reduce((sum, object) => sum + Number(object >= 0), 0);
  const rays = inside?.reduce((sum, byte) => sum + byte, 0);
  const parts = [
    rays !== undefined && `${count(rays)} in the ranges`,
    hits !== undefined && `${count(hits)} hit an object`,
    points && `${count(points.distance.length)} points`,
  ];
  return parts.filter(Boolean).join(" · ");
}
