/** The explanation of one ray and one primitive: a drawing, the exact numbers, and the text. */

import { el } from "./dom.ts";
import { pairOf, type BoxPair } from "./engine/pair.ts";
import { explainPair, number, slabTexts } from "./explanation.ts";
import { slabPicture, trianglePicture, type Picture, type Shape } from "./pair_picture.ts";
import type { Explanation, Hit, Ray, SceneModel } from "./types.ts";

const SVG = "http://www.w3.org/2000/svg";

/** Draws how a hit or a miss follows from the numbers of the ray and the primitive. */
export function drawExplanation(model: SceneModel, ray: Ray, hit: Hit): HTMLElement {
  const pair = pairOf(model, ray, hit);
  const explanation = explainPair(pair, ray);
  const verdict = el("p", { "data-test": "explain-verdict" }, el("strong", {}, verdictText(explanation)));
  const picture = pair.kind === "box" ? slabPicture(pair, ray) : pair.kind === "triangle" && trianglePicture(pair);
  const lines = explanation.text.split("\n").map((line) => el("p", { class: "note" }, line));
  return el("div", {}, verdict, picture && draw(picture), ...lines, pair.kind === "box" && slabTable(pair));
}

function verdictText({ verdict, t }: Explanation): string {
  return verdict === "miss" || t === "" ? "Miss, exactly" : `Hit at t = ${t}`;
}

/** The planes of each axis and the times at which the line crosses them, with all digits. */
function slabTable({ slabs }: BoxPair): HTMLElement {
  const head = el("tr", {}, ...["", "near", "far", "lower", "upper"].map((name) => el("th", {}, name)));
  const rows = slabs.map((slab, k) => {
    const texts = [...slabTexts(slab), number(slab.lower), number(slab.upper)];
    return el("tr", {}, el("th", {}, "xyz"[k]), ...texts.map((text) => el("td", {}, text)));
  });
  const table = el("table", { "data-test": "explain-slabs" }, head, ...rows);
  table.style.fontVariantNumeric = "tabular-nums";
  table.style.borderSpacing = "8px 2px";
  const scroll = el("div", { tabindex: 0, "aria-label": "slabs of the box" }, table);
  scroll.style.overflowX = "auto";
  return scroll;
}

function draw({ width, height, title, shapes }: Picture): SVGElement {
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, "data-test": "explain-drawing" });
  picture.style.width = "100%";
  picture.style.maxWidth = "460px";
  picture.append(...shapes.map(element));
  return picture;
}

function element(shape: Shape): SVGElement {
  switch (shape.kind) {
    case "line": {
      const { x1, y1, x2, y2, colour = "currentColor", dashed = false, width = 1 } = shape;
      return svg("line", { x1, y1, x2, y2, stroke: colour, "stroke-width": width, "stroke-dasharray": dashed ? "3 3" : "none" });
    }
    case "bar":
      return svg("rect", { x: shape.x, y: shape.y, width: shape.width, height: shape.height, rx: 1, fill: shape.colour });
    case "dot":
      return svg("circle", { cx: shape.x, cy: shape.y, r: 4.5, fill: shape.colour, stroke: "currentColor" });
    case "polygon":
      return svg("polygon", { points: shape.points.join(" "), fill: shape.colour, "fill-opacity": 0.4, stroke: "currentColor" });
    case "text": {
      const place = { x: shape.x, y: shape.y, "text-anchor": shape.anchor, "font-size": 11, fill: "currentColor" };
      const text = svg("text", { ...place, stroke: "var(--back)", "stroke-width": 3, "paint-order": "stroke" });
      text.textContent = shape.text;
      return text;
    }
  }
}

function svg(tag: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}
