/** Links, pictures, saved pages, and files to open. */

import { textOfError, type Actions } from "../actions.ts";
import { download, el } from "../dom.ts";
import { fileName } from "../format.ts";
import { LONGEST, toHash } from "../link.ts";
import type { LegendEntry } from "../types.ts";

export class Files {
  /** The legend of what is drawn, for pictures. */
  legend: LegendEntry[] = [];
  private readonly input: HTMLInputElement;

  constructor(private readonly actions: Actions) {
    this.input = el("input", {
      type: "file",
      "data-test": "file",
      "aria-label": "file to open",
      onchange: () => this.chosen(),
    });
  }

  /** The address of this view. */
  async link(): Promise<string> {
    const hash = await toHash(this.actions.store.view());
    if (hash.length > LONGEST) throw new Error("This view is too large for a link: save the page instead.");
    return `${location.href.split("#")[0]}#${hash}`;
  }

  async copyLink(): Promise<void> {
    await this.attempt("", async () => {
      const link = await this.link();
      history.replaceState(null, "", link);
      await this.actions.copy(link, "link");
    });
  }

  async savePage(): Promise<void> {
    await this.attempt("Saving the page", async () => {
      await this.actions.settled();
      const { name, content } = await this.actions.caster.save(this.actions.store.view());
      download(name, new Blob([content as BlobPart], { type: "text/html" }));
    });
  }

  async savePicture(): Promise<void> {
    await this.attempt("Drawing the picture", async () => {
      const { title, name } = this.actions.store.model;
      download(fileName(title || name, "png"), await this.picture(this.actions.store.state.pictureScale));
    });
  }

  /** The picture of the scene, of `scale` pixels for one of the page. */
  async picture(scale: number): Promise<Blob> {
    const { title, name } = this.actions.store.model;
    await this.actions.settled();
    await this.actions.stage.settled();
    return this.actions.stage.png(this.legend, title || name, scale);
  }

  choose(): void {
    this.input.click();
  }

  private chosen(): void {
    const file = this.input.files?.[0];
    this.input.value = "";
    if (file) void this.open(file);
  }

  async open(file: File): Promise<void> {
    const { notice, caster } = this.actions;
    const text = `Sending ${file.name}`;
    const progress = (fraction: number) => notice.progress(fraction < 1 ? text : `Reading ${file.name}`, 0.99 * fraction);
    let said = "";
    await this.attempt(text, async () => void (said = await caster.upload(file, progress)));
    if (said) notice.info(said);
  }

  private async attempt(text: string, act: () => Promise<void>): Promise<void> {
    const { notice } = this.actions;
    if (text) notice.progress(text, 0);
    try {
      await act();
    } catch (error) {
      notice.error(textOfError(error));
    } finally {
      notice.clear("progress");
    }
  }

  /** The field in which a file is chosen, for the document. */
  get element(): HTMLElement {
    this.input.hidden = true;
    return this.input;
  }
}

/** Let files be dropped anywhere on the page. */
export function acceptDrops(page: HTMLElement, open: (file: File) => void): void {
  page.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    page.classList.add("drop");
  });
  page.addEventListener("dragleave", () => page.classList.remove("drop"));
  page.addEventListener("drop", (event) => {
    page.classList.remove("drop");
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    open(file);
  });
}
