/** What is selected, as the card, the highlight, the list of hits, copies and explanations show it: all from `selection`. */

import { missOf } from "./geometry.ts";
import { halfSpaces } from "./stage/cut.ts";
import { isCutAway } from "./stage/hull.ts";
import type { Store } from "./store.ts";
import type { Hit } from "./types.ts";

/** Contacts of the ray with the one object that is selected; none if several are. */
export function contactsOf({ state }: Store): Hit[] {
  const { answer, selection } = state;
  return selection.length === 1 ? (answer?.hits.filter((hit) => hit.object === selection[0]) ?? []) : [];
}

/** The chosen contact with the selected object, else the first; null if the ray does not hit it. */
export function chosenHit(store: Store): Hit | null {
  const contacts = contactsOf(store);
  return contacts.find(({ primitive }) => primitive === store.state.contact) ?? contacts[0] ?? null;
}

/** What is explained: the chosen hit, or the miss of the one object that is selected and can be hit. */
export function explainedHit(store: Store): Hit | null {
  const { answer, selection } = store.state;
  if (!answer || selection.length !== 1) return null;
  const [object] = selection;
  return chosenHit(store) ?? (store.visibility.pickable[object] ? missOf(store.model, object) : null);
}

/** Why an object is not in the picture: "hidden" or "cut away"; "" if it is. */
export function absence({ model, state, visibility }: Store, object: number): string {
  if (!visibility.shown[object]) return "hidden";
  return isCutAway(model, object, halfSpaces(state.cut)) ? "cut away" : "";
}
