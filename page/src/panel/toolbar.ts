/** Buttons over the scene: camera, appearance, link, files, help. */

import type { Actions } from "../actions.ts";
import { choice, el } from "../dom.ts";
import type { Axis, StandardView } from "../types.ts";
import { button } from "./command.ts";

const VIEWS: StandardView[] = ["iso", "front", "back", "left", "right", "top", "bottom"];

export function toolbar(actions: Actions): HTMLElement {
  const of = (...names: string[]) => names.map((name) => button(actions, name));
  const camera = group("camera", ...of("fit-all", "fit-selection"), views(actions), ...of("orthographic"), upAxis(actions));
  const files = of("link", "png", "save", ...(actions.caster.live ? ["open"] : []));
  const page = group("page", ...of("dark"), ...files, ...of("help"));
  return el("div", { class: "toolbar", role: "toolbar", "aria-label": "view" }, camera, page);
}

function group(label: string, ...children: HTMLElement[]): HTMLElement {
  return el("div", { class: "group", role: "group", "aria-label": label }, ...children);
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

function upAxis(actions: Actions): HTMLElement {
  const options = ["x", "y", "z"].map((value) => ({ value, text: `${value} up` }));
  const select = choice("up axis", "up", options, (up) => actions.setUp(up as Axis));
  actions.store.watch(["camera"], () => (select.value = actions.stage.camera().up));
  return select;
}
