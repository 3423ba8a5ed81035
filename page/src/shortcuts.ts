/** What keys do. */

import type { Actions } from "./actions.ts";
import type { Files } from "./panel/files.ts";
import type { Shortcut } from "./panel/help.ts";
import type { StandardView } from "./types.ts";

const VIEWS: StandardView[] = ["iso", "front", "back", "left", "right", "top", "bottom"];

export function shortcutsOf(
  actions: Actions,
  more: { find: () => void; help: () => void; explain: () => void; files: Files },
): Shortcut[] {
  const { store, stage } = actions;
  const escape = () => {
    if (store.state.selection.length) actions.select([]);
    else actions.clearRay();
  };
  return [
    { key: "F", text: "fit all", act: () => stage.fitAll() },
    { key: "S", text: "fit the selection", act: () => actions.fitSelection() },
    { key: "Z", text: "zoom to the selection, the others faded", act: () => actions.zoomTo(store.state.selection) },
    { key: "/", text: "find", act: more.find },
    { key: "H", text: "hide the selection", act: () => actions.hideSelection() },
    { key: "I", text: "show only the selection", act: () => actions.isolateSelection() },
    {
      key: "P",
      text: "rays pass through the selection, or hit it again",
      act: () => actions.toggleSelectionPickable(),
    },
    { key: "A", text: "show all", act: () => actions.showAll() },
    { key: "R", text: "show what was shown at the start", act: () => actions.resetFilters() },
    { key: "U", text: "undo hiding (also Ctrl + Z)", act: () => store.undo() },
    { key: "[", text: "previous hit", act: () => actions.chooseNext(-1) },
    { key: "]", text: "next hit", act: () => actions.chooseNext(1) },
    { key: "X", text: "explain the chosen hit", act: more.explain },
    { key: "C", text: "remove the cut", act: () => actions.noCut() },
    { key: "E", text: "edges", act: () => store.set({ edges: !store.state.edges }) },
    { key: "O", text: "orthographic", act: () => actions.toggleOrthographic() },
    ...VIEWS.map((view, at) => ({ key: String(at + 1), text: `view: ${view}`, act: () => actions.standardView(view) })),
    { key: "D", text: "dark mode", act: () => store.set({ dark: !store.state.dark }) },
    { key: "L", text: "copy a link to this view", act: () => void more.files.copyLink() },
    { key: "G", text: "save a picture", act: () => void more.files.savePicture() },
    { key: "W", text: "save the page", act: () => void more.files.savePage() },
    { key: "?", text: "this sheet", act: more.help },
    { key: "Escape", text: "select nothing; then forget the ray", act: escape },
  ];
}
