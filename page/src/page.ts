/** The page: the scene's canvas, its panel, and what connects them. */

import { Actions } from "./actions.ts";
import { isOfAnother } from "./checks.ts";
import { CONTROLS, partsByElement, PARTS, restoredView, startView } from "./controls.ts";
import { el, later, replace, say } from "./dom.ts";
import { count } from "./format.ts";
import { fromHash, toHash, LONGEST } from "./link.ts";
import { ColourPanel } from "./panel/colour.ts";
import { listen } from "./panel/command.ts";
import { cutPanel } from "./panel/cut.ts";
import { acceptDrops, Files } from "./panel/files.ts";
import { helpSheet } from "./panel/help.ts";
import { Hits } from "./panel/hits.ts";
import { LegendOverlay, remarksOf } from "./panel/legend.ts";
import { Notice } from "./panel/notice.ts";
import { ranges } from "./panel/ranges.ts";
import { Rays } from "./panel/rays.ts";
import { Search } from "./panel/search.ts";
import { Selection } from "./panel/selection.ts";
import { Sheet } from "./panel/sheet.ts";
import { Tabs, type Panel } from "./panel/tabs.ts";
import { measured, toolbar } from "./panel/toolbar.ts";
import { viewCube } from "./panel/view_cube.ts";
import { Tree } from "./panel/tree.ts";
import { CAMERA_KEYS } from "./orbit.ts";
import { Stage } from "./stage/stage.ts";
import { Store } from "./store.ts";
import type { Caster, LegendEntry, SceneModel, ViewState } from "./types.ts";

/** The address follows the view this long after its last change. */
const PAUSE = 500;

export class Page {
  readonly notice = new Notice();
  readonly stage: Stage;
  /** For tests. */
  readonly partsByElement = partsByElement();
  actions: Actions | null = null;
  files: Files | null = null;
  private readonly canvas = el("canvas", {
    tabindex: 0,
    "aria-label": "scene: Enter casts a ray through its middle, arrows turn it",
    "data-test": "scene",
  });
  private readonly overlay = el("div", {});
  private readonly empty = el("p", { class: "empty", role: "status", "data-test": "empty" });
  private readonly bars = el("div", { class: "bars" });
  private readonly drop = el("div", { class: "dropping", "aria-hidden": "true" }, "Drop a scene to open it, or rays to add them");
  private readonly over = [this.overlay, this.empty, this.bars, this.notice.element, this.drop];
  private readonly scene = el("main", { class: "scene" }, this.canvas, ...this.over);
  private readonly title = el("h1", { "data-test": "title" }, "raybox");
  private readonly size = el("small", { "data-test": "size" });
  private readonly shown = el("span", {});
  private readonly find = el("div", {});
  private readonly picked = el("div", {});
  private readonly upper = new Tabs("objects, colour, cut", () => this.sheet.open(), (name) => this.placeCard(name));
  private readonly lower = new Tabs("hits and rays", () => this.sheet.open());
  private readonly credit = el("footer", { "data-test": "credit" });
  private readonly extras = el("div", { class: "extras" });
  private readonly sheet: Sheet;
  private panels: { upper: Panel[]; lower: Panel[] } = { upper: [], lower: [] };
  private below: HTMLElement = el("div", {});
  private wasNarrow: boolean | null = null;
  private key: (event: KeyboardEvent) => void = () => {};

  constructor(body: HTMLElement) {
    const head = el("header", {}, this.title, this.size, this.shown);
    const content = [head, this.find, this.picked, this.upper.element, this.lower.element, this.credit];
    this.sheet = new Sheet(content, (covered, narrow) => this.placed(covered, narrow));
    body.append(this.scene, this.sheet.element, this.extras);
    this.stage = new Stage(this.canvas);
    addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("keydown", (event) => this.cameraKey(event));
    acceptDrops(body, (file) => void this.files?.open(file));
    this.sheet.place();
  }

  /** Show a scene; `view` is the state of a link or of a saved page. */
  open(model: SceneModel, caster: Caster, view: unknown): void {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const store = new Store(model, restoredView(model, view, startView(model, dark)));
    const actions = new Actions(store, this.stage, caster, this.notice);
    this.actions?.close();
    this.actions = actions;
    this.files = new Files(actions);
    this.stage.load(model);
    this.showScene(actions, this.files);
    this.follow(actions);
    if (store.state.camera) this.stage.setCamera(store.state.camera);
    else this.stage.fitAll();
    if (isOfAnother(model, view)) this.notice.info("This link is of another scene, so its view is not shown.");
    void actions.restoreRay();
  }

  /** Show another view of the same scene: its link was opened here. */
  reopen(view: unknown): void {
    if (this.actions) this.open(this.actions.store.model, this.actions.caster, view);
  }

  /** The same scene came again, or with another table of rays. */
  update(model: SceneModel): void {
    this.actions?.store.update(model);
  }

  private showScene(actions: Actions, files: Files): void {
    const { model } = actions.store;
    say(this.title, model.name || model.title, model.title || model.name);
    document.title = this.title.textContent || "raybox";
    this.size.textContent = sizeOf(model);
    say(this.credit, model.credit);
    const search = new Search(actions);
    replace(this.find, model.objects > 1 && search.element);
    replace(this.picked, new Selection(actions).element);
    const hits = this.fillPanels(actions, files);
    const help = helpSheet();
    const find = () => search.input.focus();
    actions.page = { files, find, help: () => help.showModal(), explain: () => hits.explain() };
    this.key = listen(actions);
    replace(this.bars, toolbar(actions));
    replace(this.extras, help, files.element);
    this.sheet.place();
  }

  private fillPanels(actions: Actions, files: Files): Hits {
    const { model } = actions.store;
    const legends: Record<"objects" | "rays" | "remarks", LegendEntry[]> = { objects: [], rays: [], remarks: [] };
    const overlay = new LegendOverlay(actions);
    replace(this.overlay, overlay.element, viewCube(actions), measured(actions));
    const merge = () => {
      files.legend = [...legends.objects, ...legends.rays, ...legends.remarks];
      overlay.fill(files.legend);
    };
    const colour = new ColourPanel(actions, (legend) => {
      legends.objects = legend;
      merge();
    });
    actions.store.watch(["selection", "hidden", "ranges"], () => {
      legends.remarks = remarksOf(actions.store);
      merge();
    });
    const tree = new Tree(actions);
    replace(this.shown, tree.total);
    const objects = el("div", { class: "panel" }, tree.element, ranges(actions));
    const hits = new Hits(actions);
    const upper: Panel[] = [
      { name: "objects", title: "Objects", content: objects },
      { name: "colour", title: "Colour", content: colour.element },
      { name: "cut", title: "Cut", content: cutPanel(actions) },
    ];
    const lower: Panel[] = [{ name: "hits", title: "Hits", content: hits.element }];
    if (model.rays || model.table || model.points) {
      const rays = new Rays(actions, (legend) => {
        legends.rays = legend;
        merge();
      });
      lower.push({ name: "rays", title: "Rays", content: rays.element });
    }
    this.panels = { upper, lower };
    this.below = hits.below;
    this.arrange();
    actions.store.changed(["rayCount"], () => {
      if (actions.store.state.answer?.row === null) this.showPanel("hits");
    });
    return hits;
  }

  private showPanel(name: string): void {
    this.upper.show(name);
    this.lower.show(name);
    this.sheet.open();
    if (this.sheet.narrow) this.sheet.element.scrollTop = this.upper.element.offsetTop;
  }

  /** The card of the selection is above the tabs; on a phone after the list of hits, which comes first. */
  private placeCard(shown: string): void {
    if (this.sheet.narrow && shown === "hits") this.below.append(this.picked);
    else this.upper.element.before(this.picked);
  }

  /** Keys on the scene itself: the camera, and a ray through the middle. */
  private cameraKey(event: KeyboardEvent): void {
    const turn = CAMERA_KEYS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || !(turn || event.key === "Enter")) return;
    event.preventDefault();
    if (turn) this.actions?.setCamera(turn(this.stage.camera()));
    else this.castThroughMiddle(event.shiftKey);
  }

  private castThroughMiddle(add: boolean): void {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const covered = parseFloat(this.scene.style.getPropertyValue("--covered")) || 0;
    const ray = this.stage.rayOf(left + width / 2, top + (height - covered) / 2);
    if (ray) void this.actions?.pick(ray, add);
  }

  /** Two groups of tabs one above the other in a column, all in one on a sheet. */
  private arrange(): void {
    const { upper, lower } = this.panels;
    if (!upper.length) return;
    this.upper.fill(this.sheet.narrow ? [...upper, ...lower] : upper);
    this.lower.fill(this.sheet.narrow ? [] : lower);
    if (!this.sheet.narrow) this.placeCard("");
  }

  private placed(covered: number, narrow: boolean): void {
    if (narrow !== this.wasNarrow) this.arrange();
    this.wasNarrow = narrow;
    this.scene.style.setProperty("--covered", `${covered}px`);
    this.stage?.setInsets({ top: this.bars.offsetHeight, right: 0, bottom: covered, left: 0 });
  }

  /** Draw what the state says, and put what happens in the drawing into the state. */
  private follow(actions: Actions): void {
    const { store } = actions;
    const { stage } = this;
    for (const part of PARTS) {
      const { draw, after = [] } = CONTROLS[part];
      if (draw) store.watch([part, ...after], () => stage.draw(draw(store)));
    }
    store.changed(["hidden", "unpickable", "ranges"], () => actions.filtersChanged());
    store.changed(["cut"], () => actions.cutChanged());
    store.watch(["dark"], () => (document.documentElement.dataset.theme = store.state.dark ? "dark" : "light"));
    store.changed(PARTS, later(PAUSE, () => void this.keepAddress(store)));
    store.watch(["hidden", "ranges"], () => (this.empty.textContent = emptyText(store)));
    stage.on({
      pick: (ray, { add }) => void actions.pick(ray, add),
      pickRow: (row) => void actions.pickRow(row),
      cameraChanged: (camera) => store.set({ camera }),
      cutChanged: (cut) => store.set({ cut }),
    });
  }

  /** Write the view into the address, so that a reload or a copied address shows it again. */
  private async keepAddress(store: Store): Promise<void> {
    const hash = await toHash(store.view());
    if (store !== this.actions?.store || hash.length > LONGEST) return;
    try {
      history.replaceState(null, "", `#${hash}`);
    } catch {
      // Pages inside others may not change their address: the link button still works.
    }
  }
}

/** The view in the address; null if there is none, or if it is damaged. */
export async function viewInAddress(): Promise<Partial<ViewState> | null> {
  try {
    return await fromHash(location.hash);
  } catch {
    return null;
  }
}

/** Why there is nothing to see; "" if there is something. */
function emptyText({ model, visibility }: Store): string {
  if (model.objects === 0) return "This scene is empty: it has no objects.";
  return visibility.shownCount ? "" : "All objects are hidden.";
}

function sizeOf(model: SceneModel): string {
  const primitives = model.geometries.reduce((sum, geometry) => sum + geometry.primitives, 0);
  const objects = `${count(model.objects)} ${model.objects === 1 ? "object" : "objects"}`;
  return primitives === model.objects ? objects : `${objects}, ${count(primitives)} primitives`;
}
