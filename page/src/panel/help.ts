/** The sheet that lists gestures and keys. */

import { COMMANDS } from "../controls.ts";
import { el, textButton } from "../dom.ts";

/** A dialog with all keys and gestures. */
export function helpSheet(): HTMLDialogElement {
  const gestures: [string, string][] = [
    ["Click, tap", "cast a ray through the pixel"],
    ["Ctrl or Shift + click", "add to the selection, or take out of it"],
    ["Drag, one finger", "orbit"],
    ["Right drag, Shift + drag, two fingers", "pan"],
    ["Wheel, pinch", "zoom"],
    ["Arrows, + and − on the scene", "turn and zoom the camera"],
    ["Enter on the scene", "cast a ray through its middle"],
  ];
  const keys = COMMANDS.flatMap(({ key, help }): [string, string][] => (key ? [[key, help]] : []));
  const close = textButton("Close", "help-close", () => dialog.close());
  const dialog = el(
    "dialog",
    { class: "help", "aria-label": "help", "data-test": "help-sheet" },
    el("h2", {}, "Pointer and touch"),
    table(gestures),
    el("h2", {}, "Keys"),
    table(keys),
    close,
  );
  return dialog;
}

function table(rows: [string, string][]): HTMLElement {
  return el(
    "dl",
    {},
    ...rows.map(([key, text]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, text))),
  );
}
