/** What Python changes of the view, and what Python hears of picks and of the selection. */

import type { Actions } from "./actions.ts";
import type { LiveCaster, Run } from "./live.ts";
import { restoredView, startView } from "./controls.ts";
import type { ViewFields } from "./schema.ts";
import type { SceneModel, View } from "./types.ts";
import { fromRanges, toRanges } from "./visibility.ts";

/** Changes the view; numbers that do not fit the scene change nothing. */
export function changeView(actions: Actions, { hide, show, ...view }: ViewFields): void {
  const { store } = actions;
  if (hide) actions.setHidden(objectsIn(hide), true);
  if (show) actions.setHidden(objectsIn(show), false);
  const { camera, colour, selection } = restoredView(store.model, { ...store.state, ...view }, store.state);
  if (view.camera && camera) actions.setCamera(camera);
  if (view.colour) store.set({ colour });
  if (view.selection) actions.select(selection);
}

function* objectsIn(ranges: readonly number[]): Generator<number> {
  for (let at = 0; at + 1 < ranges.length; at += 2) {
    for (let object = ranges[at]; object <= ranges[at + 1]; object++) yield object;
  }
}

/** Returns a view for a scene in which runs of its objects have other numbers, and the others are gone. */
export function renumbered(view: View, before: SceneModel, now: SceneModel, runs: readonly Run[]): View {
  const moved = (ranges: number[], start: Uint8Array | null) => {
    const old = fromRanges(ranges, before.objects);
    const bytes = start?.slice() ?? new Uint8Array(now.objects);
    for (const [from, to, size] of runs) bytes.set(old.subarray(from, from + size), to);
    return toRanges(bytes);
  };
  const numberOf = (object: number) => {
    const run = runs.find(([from, , size]) => object >= from && object < from + size);
    return run ? [object - run[0] + run[1]] : [];
  };
  return {
    ...view,
    // The first points that come would be covered by their rays.
    rays: !before.points && now.points ? startView(now, view.dark).rays : view.rays,
    hidden: moved(view.hidden, now.hiddenAtStart),
    unpickable: moved(view.unpickable, null),
    selection: view.selection.flatMap(numberOf),
  };
}

/** Reports what the user does on a page; what Python does there is not reported. */
export class Reports {
  private quiet = false;

  constructor(private readonly caster: LiveCaster) {}

  /** Reports from now on what happens in a scene. */
  follow({ store }: Actions): void {
    store.changed(["selection"], () => this.quiet || this.caster.reportSelection(store.state.selection));
    store.changed(["rayCount"], () => this.quiet || queueMicrotask(() => this.pick(store.state.answer)));
  }

  /** The selection follows the answer: it is reported first. A line of sight, and a ray that is cut away, is no pick. */
  private pick(answer: Actions["store"]["state"]["answer"]): void {
    if (answer && !answer.ends && answer.ray.tMax > answer.ray.tMin) this.caster.reportPick(answer.ray);
  }

  /** Does what Python requests. */
  quietly(act: () => void): void {
    this.quiet = true;
    act();
    this.quiet = false;
  }
}
