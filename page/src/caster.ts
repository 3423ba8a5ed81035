/** Who answers rays: the server of a live page, or a saved page itself. */

export { LiveCaster, type Connection, type LiveEvents } from "./live.ts";
export { SavedCaster, readSaved, type Saved } from "./saved.ts";
