/** Keyboard shortcuts, and the sheet that lists them. */

import { el, textButton } from "../dom.ts";

export interface Shortcut {
  key: string;
  text: string;
  act: () => void;
}

/** A dialog with all shortcuts and gestures. */
export function helpSheet(shortcuts: Shortcut[]): HTMLDialogElement {
  const gestures: [string, string][] = [
    ["Click, tap", "cast a ray through the pixel"],
    ["Ctrl or Shift + click", "add to the selection, or take out of it"],
    ["Drag, one finger", "orbit"],
    ["Right drag, Shift + drag, two fingers", "pan"],
    ["Wheel, pinch", "zoom"],
    ["Arrows, + and − on the scene", "turn and zoom the camera"],
    ["Enter on the scene", "cast a ray through its middle"],
  ];
  const keys = shortcuts.map(({ key, text }): [string, string] => [key, text]);
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

/** Run shortcuts on key presses that no field, list or dialog uses. */
export function listen(shortcuts: Shortcut[]): (event: KeyboardEvent) => void {
  return (event) => {
    const target = event.target as HTMLElement;
    const typing = target.closest("input:not([type=checkbox]):not([type=range]), select, textarea, dialog");
    const undo = event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey);
    if (typing || event.altKey || ((event.ctrlKey || event.metaKey) && !undo)) return;
    const key = undo ? "U" : event.key.length === 1 ? event.key.toUpperCase() : event.key;
    const found = shortcuts.find((shortcut) => shortcut.key.split(" or ").includes(key));
    if (!found) return;
    event.preventDefault();
    found.act();
  };
}
