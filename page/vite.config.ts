import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** The licence of what is bundled, as its terms want in every copy: also in saved pages. */
function licences(): Plugin {
  const text = readFileSync("node_modules/three/LICENSE", "utf8").trim();
  const note = `<!--\nraybox: Apache-2.0. This page contains three.js:\n\n${text}\n-->`;
  return { name: "licences", transformIndexHtml: (html) => html.replace("<head>", () => `${note}\n<head>`) };
}

/** A policy that lets only the built script and style run: nothing evaluated, nothing from elsewhere. */
function policy(html: string): string {
  const hash = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const inline = (tag: string) =>
    [...html.matchAll(new RegExp(`<${tag}[^>]*>([^]*?)</${tag}>`, "g"))].map((match) => hash(match[1]));
  return [
    "default-src 'none'",
    `script-src ${inline("script").join(" ")}`,
    `style-src ${inline("style").join(" ")}`,
    "connect-src 'self' ws: wss:",
    "img-src data: blob:",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
}

/** Writes the policy into the page, once script and style are inside. */
function strictPolicy(): Plugin {
  const page = "build/page/index.html";
  return {
    name: "strict-policy",
    writeBundle() {
      const html = readFileSync(page, "utf8");
      const meta = `<meta http-equiv="Content-Security-Policy" content="${policy(html)}" />`;
      writeFileSync(page, html.replace("<head>", () => `<head>\n    ${meta}`));
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [licences(), viteSingleFile(), strictPolicy()],
  build: { outDir: "build/page", target: "es2022", chunkSizeWarningLimit: 1500, modulePreload: false },
});
