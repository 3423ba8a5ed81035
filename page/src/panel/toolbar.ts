/** Buttons over the scene: camera, appearance, link, files, help. */

import type { Actions } from "../actions.ts";
import { PICTURE_SCALES } from "../checks.ts";
import { VIEWS } from "../controls.ts";
import { choice, el } from "../dom.ts";
import { measuredText } from "../measure.ts";
import type { Axis, StandardView } from "../types.ts";
import { button } from "./command.ts";

export function toolbar(actions: Actions): HTMLElement {
  const of = (...names: string[]) => names.map((name) => button(actions, name));
  const canMeasure = actions.caster.live || actions.caster.reason === null;
  const camera = group("camera", ...of("fit-all", "fit-selection"), views(actions), ...of("orthographic"), upAxis(actions), ...of(...(canMeasure ? ["measure"] : [])));
  const files = [...of("link", "png"), pictureScale(actions), ...of("save", ...(actions.caster.live ? ["open"] : []))];
  const page = group("page", ...of("dark"), ...files, ...of("help"));
  return el("div", { class: "toolbar", role: "toolbar", "aria-label": "view" }, camera, page);
}

function group(label: string, ...children: HTMLElement[]): HTMLElement {
  return el("div", { class: "group", role: "group", "aria-label": label }, ...children);
}

/** What the measured points say, over the scene. */
export function measured({ store }: Actions): HTMLElement {
  const note = el("p", { class: "measured", role: "status", "data-test": "measured" });
  store.watch(["measure"], () => {
    note.hidden = !store.state.measure;
    note.textContent = measuredText(store.state.measure ?? [], store.model.unit);
  });
  return note;
}

function views(actions: Actions): HTMLElement {
  const options = [{ value: "", text: "view" }, ...VIEWS.map((value) => ({ value, text: value }))];
  const select = choice("standard view", "view", options, (view) => {
    if (view) actions.stage.standardView(view as StandardView);
    select.value = "";
  });
  select.title = "standard views (keys 1 to 7)";
  return select;
}

function pictureScale({ store }: Actions): HTMLElement {
  const options = PICTURE_SCALES.map((scale) => ({ value: String(scale), text: `${scale}×` }));
  const select = choice("pixels of the picture", "png-scale", options, (scale) => store.set({ pictureScale: Number(scale) }));
  select.title = "pixels of the saved picture for one of the page, along each axis";
  store.watch(["pictureScale"], () => (select.value = String(store.state.pictureScale)));
  return select;
}

function upAxis(actions: Actions): HTMLElement {
  const options = ["x", "y", "z"].map((value) => ({ value, text: `${value} up` }));
  const select = choice("up axis", "up", options, (up) => actions.setUp(up as Axis));
  actions.store.watch(["camera"], () => (select.value = actions.stage.camera().up));
  return select;
}
