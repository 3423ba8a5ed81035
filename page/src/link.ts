/** The state of a view in the address: plain JSON if short, compressed if long. */

import type { ViewState } from "./types.ts";
import { through } from "./wire.ts";

const PLAIN = 300;
/** Longer addresses are cut by mail programs and some browsers. */
export const LONGEST = 30_000;

/** What follows `#`: `v=` and JSON, or `z=` and deflated JSON, both in base64url. */
export async function toHash(view: Partial<ViewState>): Promise<string> {
  const bytes = new TextEncoder().encode(JSON.stringify(view));
  if (bytes.length <= PLAIN) return `v=${toBase64(bytes)}`;
  return `z=${toBase64(await through(bytes, new CompressionStream("deflate-raw")))}`;
}

/** The state that a hash contains; null if it contains none, an error if it is damaged. */
export async function fromHash(hash: string): Promise<Partial<ViewState> | null> {
  const [kind, text] = hash.replace(/^#/, "").split(/=(.*)/s);
  if ((kind !== "v" && kind !== "z") || !text) return null;
  const bytes = fromBase64(text);
  const json = kind === "v" ? bytes : await through(bytes, new DecompressionStream("deflate-raw"));
  return JSON.parse(new TextDecoder().decode(json)) as Partial<ViewState>;
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}
