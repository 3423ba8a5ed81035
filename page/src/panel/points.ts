/** How the points of scans are shown: their colour, their size, and ranges of their fields. */

import type { Actions } from "../actions.ts";
import { SIZES } from "../checks.ts";
import { choice, el, numberField } from "../dom.ts";
import { pointColours, pointRanges, residualLimit, residuals } from "../points.ts";
import type { PointsView } from "../types.ts";
import { rangeFilter } from "./ranges.ts";

export function pointControls(actions: Actions): HTMLElement {
  const { store } = actions;
  const set = (change: Partial<PointsView>) => store.set({ points: { ...store.state.points, ...change } });
  const colour = choice("colour points by", "points-colour", pointColours(store.model), (value) => set({ colour: value }));
  const [min, max] = SIZES;
  const attributes = { type: "range", min, max, step: "any", "aria-label": "size of points", "data-test": "points-size" };
  const size = el("input", { ...attributes, title: "size of points", oninput: () => set({ size: size.valueAsNumber }) });
  const limit = numberField("end of the scale", "points-limit", (value) => set({ limit: value > 0 ? value : null }));
  const scale = el("label", { title: "0: chosen by the page" }, "± ", limit.input);
  store.watch(["points", "table"], () => {
    const { points } = store.state;
    colour.value = points.colour;
    size.valueAsNumber = points.size;
    scale.hidden = points.colour !== "residual";
    if (!scale.hidden) limit.set(points.limit ?? residualLimit(residuals(store.model)));
  });
  const bar = el("div", { class: "bar points" }, el("span", {}, "Points"), colour, scale, size);
  return el("div", { class: "block" }, bar, ...pointRanges(store.model).map((field) => rangeFilter(actions, field).element));
}
