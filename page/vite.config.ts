import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** The licence of what is bundled, as its terms want in every copy: also in saved pages. */
function licences(): Plugin {
  const text = readFileSync("node_modules/three/LICENSE", "utf8").trim();
  const note = `<!--\nraybox: Apache-2.0. This page contains three.js:\n\n${text}\n-->`;
  return { name: "licences", transformIndexHtml: (html) => html.replace("<head>", () => `${note}\n<head>`) };
}

export default defineConfig({
  base: "./",
  plugins: [licences(), viteSingleFile()],
  build: { outDir: "build/page", target: "es2022", chunkSizeWarningLimit: 1500, modulePreload: false },
});
