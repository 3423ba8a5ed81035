/** Buttons over the scene: camera, appearance, link, files, help. */

import type { Actions } from "../actions.ts";
import { choice, el, iconButton } from "../dom.ts";
import type { Axis, StandardView } from "../types.ts";
import type { Files } from "./files.ts";

const VIEWS: StandardView[] = ["iso", "front", "back", "left", "right", "top", "bottom"];

export function toolbar(actions: Actions, files: Files, help: () => void): HTMLElement {
  const { store, stage } = actions;
  const ortho = iconButton("ortho", "orthographic (O)", "orthographic", () => actions.toggleOrthographic());
  const dark = iconButton("moon", "dark mode (D)", "dark", () => store.set({ dark: !store.state.dark }));
  store.watch(["dark"], () => dark.setAttribute("aria-pressed", String(store.state.dark)));
  store.watch(["camera"], () => ortho.setAttribute("aria-pressed", String(stage.camera().orthographic)));
  const camera = group(
    "camera",
    iconButton("fit", "fit all (F)", "fit-all", () => stage.fitAll()),
    iconButton("target", "fit the selection (S)", "fit-selection", () => actions.fitSelection()),
    views(actions),
    ortho,
    upAxis(actions),
  );
  const page = group(
    "page",
    dark,
    iconButton("link", "copy a link to this view (L)", "link", () => void files.copyLink()),
    iconButton("picture", "save a picture, PNG (G)", "png", () => void files.savePicture()),
    iconButton("save", "save this page as one HTML file (W)", "save", () => void files.savePage()),
    actions.caster.live && iconButton("open", "open another file", "open", () => files.choose()),
    iconButton("help", "shortcuts (?)", "help", help),
  );
  return el("div", { class: "toolbar", role: "toolbar", "aria-label": "view" }, camera, page);
}

function group(label: string, ...children: (HTMLElement | false)[]): HTMLElement {
  return el("div", { class: "group", role: "group", "aria-label": label }, ...children);
}

function views(actions: Actions): HTMLElement {
  const options = [{ value: "", text: "view" }, ...VIEWS.map((value) => ({ value, text: value }))];
  const select = choice("standard view", "view", options, (view) => {
    if (view) actions.standardView(view as StandardView);
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
