/** Starts the page: from the scene saved in it, or from the server that it came from. */

import "./style.css";
import { LiveCaster, type Connection, type Run } from "./live.ts";
import { Page, viewInAddress } from "./page.ts";
import { changeView, Reports, renumbered } from "./python.ts";
import { readSaved, SavedCaster } from "./saved.ts";
import type { Answer, SceneModel } from "./types.ts";

/** A saved page is saved again as it was opened, before anything is added to it. */
const html = `<!doctype html>\n${document.documentElement.outerHTML}`;
const page = new Page(document.body);

/** For tests and for the console. */
Object.assign(window, { raybox: page });

let follow: () => void = () => {};
addEventListener("hashchange", async () => {
  page.reopen(await viewInAddress());
  follow();
});

async function start(): Promise<void> {
  const view = await viewInAddress();
  const saved = await readSaved(document);
  if (saved) page.open(saved.model, new SavedCaster(saved.model, html), view ?? saved.state);
  else connect(view);
}

function connect(view: unknown): void {
  const address = new URL("socket", location.href.split("#")[0]);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  const { notice } = page;
  const caster = new LiveCaster(address.href, {
    model: (model, _, runs) => show(model, runs),
    view: (changes) => page.actions && reports.quietly(() => changeView(page.actions!, changes)),
    connection: (state, text) => connection(state, text),
    progress: (text, fraction) => notice.progress(text, fraction),
    error: (text) => notice.error(text),
    answer: (answer: Answer) => reports.quietly(() => page.actions?.show(answer)),
    picture: async (scale) => (await page.files?.picture(scale)) ?? null,
  });
  const reports = new Reports(caster);
  follow = () => page.actions && reports.follow(page.actions);

  /** A scene that is the same keeps its view: other tables, reconnects, a server that has started again. */
  const show = (model: SceneModel, runs: Run[] | null) => {
    notice.clear("progress");
    const before = page.actions?.store;
    if (before && !runs && sameScene(before.model, model)) return page.update(model);
    const same = before && runs && renumbered(before.state, before.model, model, runs);
    page.open(model, caster, before ? same : (view ?? caster.view));
    if (before) page.actions?.filtersChanged(); // the server may have the filters of the scene before
    follow();
  };
}

function sameScene(before: SceneModel, now: SceneModel): boolean {
  if (before.geometries === now.geometries) return true;
  const same = before.name === now.name && before.objects === now.objects;
  return same && before.bounds.flat().every((value, at) => value === now.bounds.flat()[at]);
}

function connection(state: Connection, text: string): void {
  const { notice } = page;
  if (state === "lost" || state === "ended") return notice.lost(text);
  if (state === "connecting" && !page.actions) return notice.progress("Waiting for the scene", 0);
  if (state !== "open") return;
  if (notice.clear("lost")) notice.info("Connected again.");
}

start().catch((error: unknown) => page.notice.error(String(error)));
