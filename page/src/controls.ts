/** The one table of controls: how each part of the view starts, is checked, is drawn, and is changed by keys and buttons. */

import type { Actions } from "./actions.ts";
import * as checks from "./checks.ts";
import { firstColour, lookOf } from "./colouring.ts";
import type { IconName } from "./dom.ts";
import { isScan } from "./points.ts";
import { chosenHit, explainedHit } from "./selected.ts";
import type { PageState, Store } from "./store.ts";
import type { Drawing, SceneModel, StandardView, View } from "./types.ts";
import { toRanges } from "./visibility.ts";

/** What a key or a button does. */
export interface Command {
  /** The data-test of its button. */
  name: string;
  key?: string;
  /** The tooltip of the button, and the line of the help sheet. */
  help: string;
  /** What the button shows; a command with neither has a key only. */
  icon?: IconName;
  text?: string;
  act: (actions: Actions) => void;
  /** Of a switch: whether it is on. */
  on?: (actions: Actions) => boolean;
  /** Whether it has an effect now; else its button is disabled. */
  works?: (actions: Actions) => boolean;
  /** The parts of the state that `on` and `works` depend on, if not the part of the control alone. */
  follows?: (keyof PageState)[];
}

export interface Control<T> {
  start: (model: SceneModel, dark: boolean) => T;
  check: (model: SceneModel) => checks.Check<NonNullable<T>>;
  /** What the stage draws of it, which depends on the parts `after`, too. */
  draw?: (store: Store) => Partial<Drawing>;
  after?: (keyof PageState)[];
  commands?: Command[];
  /** Patterns of the data-test of other elements that change it. */
  widgets?: string[];
}

export const VIEWS: StandardView[] = ["iso", "front", "back", "left", "right", "top", "bottom"];
const FILTERS: (keyof PageState)[] = ["hidden", "unpickable", "ranges"];
const CHOSEN: (keyof PageState)[] = ["answer", "selection", "contact", ...FILTERS];

/** A command as a row: its name, what its button shows, its key, its help, and what it does. */
function row(name: string, shows: Pick<Command, "icon" | "text">, key: string, help: string, act: Command["act"]): Command {
  return { name, ...shows, key: key || undefined, help, act };
}

const flag = () => checks.flag;
const toggle = (key: "edges" | "faded" | "dark", name: string, shows: Pick<Command, "icon" | "text">, letter: string, help: string) => ({
  ...row(name, shows, letter, help, ({ store }) => store.set({ [key]: !store.state[key] })),
  on: ({ store }: Actions) => store.state[key],
});
const raysToggle = (key: "hits" | "misses" | "points"): Command => ({
  ...row(`rays-${key}`, { text: key }, "", `draw ${key}`, ({ store: { state }, store }) => {
    store.set({ rays: { ...state.rays, [key]: !state.rays[key] } });
  }),
  on: ({ store }) => store.state.rays[key],
});

export const CONTROLS: { [K in keyof View]: Control<View[K]> } = {
  camera: {
    start: () => null,
    check: () => checks.camera,
    widgets: ["view", "up", "cube-*"],
    commands: [
      row("fit-all", { icon: "fit" }, "F", "fit all", ({ stage }) => stage.fitAll()),
      row("fit-selection", { icon: "target" }, "S", "fit the selection", (actions) => actions.fitSelection()),
      {
        ...row("orthographic", { icon: "ortho" }, "O", "orthographic", (actions) => actions.toggleOrthographic()),
        on: ({ stage }) => stage.camera().orthographic,
      },
      ...VIEWS.map((view, at) => row(`view-${view}`, {}, `${at + 1}`, `view: ${view}`, ({ stage }) => stage.standardView(view))),
    ],
  },
  hidden: {
    start: ({ hiddenAtStart }) => (hiddenAtStart ? toRanges(hiddenAtStart) : []),
    check: checks.setOf,
    widgets: ["tree-hide", "tree-only"],
    commands: [
      row("hide", { text: "Hide" }, "H", "hide the selection", (actions) => actions.hideSelection()),
      row("show", { text: "Show" }, "", "show the selection again", (actions) => actions.showSelection()),
      row("only", { text: "Only" }, "I", "show only the selection", (actions) => actions.isolateSelection()),
      {
        ...row("show-all", { text: "Show all" }, "A", "show everything, without any filter", (actions) => actions.showAll()),
        works: (actions) => actions.isFiltered(),
        follows: FILTERS,
      },
      {
        ...row("reset", { text: "Reset" }, "R", "show what was shown at the start", (actions) => actions.resetFilters()),
        works: (actions) => !actions.isStart(),
        follows: FILTERS,
      },
      {
        ...row("undo", { icon: "undo" }, "U", "undo hiding (also Ctrl + Z)", ({ store }) => store.undo()),
        works: ({ store }) => store.state.undoable > 0,
        follows: ["undoable"],
      },
    ],
  },
  unpickable: {
    start: () => [],
    check: checks.setOf,
    widgets: ["tree-pick"],
    commands: [
      {
        ...row("unpickable", { text: "Rays pass" }, "P", "rays pass through the selection, which stays drawn", (actions) =>
          actions.toggleSelectionPickable(),
        ),
        on: (actions) => actions.isSelectionPassed(),
        follows: ["unpickable", "selection"],
      },
    ],
  },
  ranges: { start: () => ({}), check: checks.rangesOfLabels, widgets: ["range-*"] },
  opacity: {
    start: () => ({}),
    check: () => checks.opacities,
    widgets: ["opacity-*"],
    commands: [
      {
        ...row("opacity-reset", { text: "All opaque" }, "", "make all classes opaque", ({ store }) => store.set({ opacity: {} })),
        works: ({ store }) => Object.keys(store.state.opacity).length > 0,
      },
    ],
  },
  colour: {
    start: firstColour,
    check: checks.colourOf,
    draw: (store) => ({ look: lookOf(store) }),
    after: ["hidden", "ranges", "opacity"],
    widgets: ["colour-by"],
  },
  edges: {
    start: () => true,
    check: flag,
    draw: ({ state }) => ({ edges: state.edges }),
    commands: [toggle("edges", "edges", { text: "Edges" }, "E", "edges")],
  },
  legend: {
    start: () => ({ on: true, x: 0, y: 0 }),
    check: () => checks.legend,
    widgets: ["legend-*"],
    commands: [
      {
        ...row("legend-on", { text: "Legend" }, "K", "legend over the scene", ({ store }) => {
          store.set({ legend: { ...store.state.legend, on: !store.state.legend.on } });
        }),
        on: ({ store }) => store.state.legend.on,
      },
    ],
  },
  cut: {
    start: () => [],
    check: () => checks.listOf(checks.plane),
    draw: ({ state }) => ({ cut: state.cut }),
    widgets: ["cut-*", "storey-*"],
    commands: [
      {
        ...row("cut-none", { text: "No cut" }, "C", "remove all section planes", ({ store }) => store.set({ cut: [] })),
        works: ({ store }) => store.state.cut.some(({ on }) => on),
      },
      {
        ...row("section-box", { text: "Section box" }, "B", "cut away all around the selection", (actions) => actions.cutAroundSelection()),
        works: ({ store }) => store.state.selection.length > 0,
        follows: ["selection"],
      },
      row("next-storey", {}, ".", "floor plan of the next storey, then all", (actions) => actions.stepStorey(1)),
      row("previous-storey", {}, ",", "floor plan of the storey below", (actions) => actions.stepStorey(-1)),
    ],
  },
  measure: {
    start: () => null,
    check: () => checks.measured,
    draw: ({ state }) => ({ measure: state.measure }),
    commands: [
      {
        ...row("measure", { icon: "ruler" }, "M", "measure between clicks, which snap to corners and edges", (actions) => {
          actions.setMeasuring(!actions.store.state.measure);
        }),
        on: ({ store }) => store.state.measure !== null,
      },
      row("escape", {}, "Escape", "forget the measured points; else select nothing; else forget the ray", (actions) =>
        actions.escape(),
      ),
    ],
  },
  selection: {
    start: () => [],
    check: (model) => checks.listOf(checks.objectOf(model)),
    draw: ({ state, visibility }) => ({ highlight: state.selection.filter((object) => visibility.shown[object]) }),
    after: ["hidden", "ranges"],
    widgets: ["result", "select-found", "deselect", "tree-object", "hits"],
    commands: [
      row("zoom", { text: "Zoom" }, "Z", "zoom to the selection, the others faded", (actions) =>
        actions.zoomTo(actions.store.state.selection),
      ),
      row("clear-selection", { icon: "close" }, "", "select nothing (Esc)", (actions) => actions.select([])),
      row("previous-hit", {}, "[", "previous hit", (actions) => actions.chooseNext(-1)),
      row("next-hit", {}, "]", "next hit", (actions) => actions.chooseNext(1)),
    ],
  },
  faded: {
    start: () => false,
    check: flag,
    draw: ({ state }) => ({ faded: state.faded }),
    commands: [toggle("faded", "fade", { text: "Fade" }, "", "the others are translucent, so that what is inside shows")],
  },
  rays: {
    // The rays of a scan would cover its points.
    start: (model) => ({ hits: !isScan(model), misses: !isScan(model), points: true, colour: "status" }),
    check: () => checks.rays,
    widgets: ["rays-colour"],
    commands: [raysToggle("hits"), raysToggle("misses"), raysToggle("points")],
  },
  points: {
    start: () => ({ colour: "distance", size: 2, limit: null }),
    check: checks.pointsOf,
    draw: ({ state }) => ({ pointSize: state.points.size }),
    widgets: ["points-*"],
  },
  ray: {
    start: () => null,
    check: () => checks.ray,
    draw: ({ state }) => ({ answer: state.answer }),
    after: ["answer"],
    widgets: ["scene", "cast", "ray-*", "rays-table"],
    commands: [row("clear-ray", { text: "Forget" }, "", "remove the ray and its marks", (actions) => actions.clearRay())],
  },
  dark: {
    start: (_, dark) => dark,
    check: flag,
    draw: ({ state }) => ({ dark: state.dark }),
    commands: [toggle("dark", "dark", { icon: "moon" }, "D", "dark mode")],
  },
  pictureScale: { start: () => 2, check: () => checks.pictureScale, widgets: ["png-scale"] },
};

/** What changes no part of the view. */
const OTHERS: Command[] = [
  row("find", {}, "/", "find", ({ page }) => page.find()),
  ...(["id", "point", "t"] as const).map((what) => ({
    ...row(`copy-hit-${what}`, { text: what }, "", `copy the ${what} of the chosen hit`, (actions) => actions.copyHit(what)),
    works: ({ store }: Actions) => chosenHit(store) !== null,
    follows: CHOSEN,
  })),
  {
    ...row("explain", { text: "Explain" }, "X", "explain the hit or the miss by its exact numbers", ({ page }) => page.explain()),
    works: ({ store }) => explainedHit(store) !== null,
    follows: CHOSEN,
  },
  row("link", { icon: "link" }, "L", "copy a link to this view", ({ page }) => void page.files.copyLink()),
  row("png", { icon: "picture" }, "G", "save a picture, PNG", ({ page }) => void page.files.savePicture()),
  row("save", { icon: "save" }, "W", "save this page as one HTML file", ({ page }) => void page.files.savePage()),
  row("open", { icon: "open" }, "", "open another file", ({ page }) => page.files.choose()),
  row("help", { icon: "help" }, "?", "this sheet", ({ page }) => page.help()),
];

export const PARTS = Object.keys(CONTROLS) as (keyof View)[];

/** All commands, each with the part of the view that it changes, if any. */
export const COMMANDS: readonly (Command & { part?: keyof View })[] = [
  ...PARTS.flatMap((part) => (CONTROLS[part].commands ?? []).map((command) => ({ ...command, part }))),
  ...OTHERS,
];

/** The view of a scene before anything is changed. */
export function startView(model: SceneModel, dark: boolean): View {
  return Object.fromEntries(PARTS.map((part) => [part, CONTROLS[part].start(model, dark)])) as unknown as View;
}

/** The view `given` as far as it is valid for this scene, with `start` for the rest. */
export function restoredView(model: SceneModel, given: unknown, start: View): View {
  if (!checks.isRaw(given) || checks.isOfAnother(model, given)) return start;
  const restored = PARTS.map((part) => [part, CONTROLS[part].check(model)(given[part]) ?? start[part]]);
  return Object.fromEntries(restored) as unknown as View;
}

/** For tests: the part of the view that each element changes, by the pattern of its data-test. */
export function partsByElement(): Record<string, keyof View> {
  const pairs = PARTS.flatMap((part) => {
    const { commands = [], widgets = [] } = CONTROLS[part];
    return [...commands.map(({ name }) => name), ...widgets].map((name) => [name, part]);
  });
  return Object.fromEntries(pairs) as Record<string, keyof View>;
}
