/** A picture to save: the drawing with title, legend, credit, scale bar and axes. */

import { harmless, wordText } from "../format.ts";
import type { LegendEntry } from "../types.ts";
import { freeRectangle } from "./camera.ts";
import { drawFurniture, type Furniture } from "./furniture.ts";

interface Captions {
  legend: readonly LegendEntry[];
  title: string;
  credit: string;
}

const LINE = 18;
const SWATCH = 12;
const PAD = 12;

/** Returns the part of a picture that panels leave free, as PNG. */
export async function composePicture(image: ImageData, what: Furniture, captions: Captions): Promise<Blob> {
  const density = image.width / what.view.width;
  const free = freeRectangle(what.view);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(free.width * density);
  canvas.height = Math.round(free.height * density);
  const context = canvas.getContext("2d")!;
  context.putImageData(image, -Math.round(free.x * density), -Math.round(free.y * density));
  context.setTransform(density, 0, 0, density, -free.x * density, -free.y * density);
  drawFurniture(context, what);
  context.setTransform(density, 0, 0, density, 0, 0);
  drawCaptions(context, captions, what.dark, free.height);
  return encoded(canvas);
}

function encoded(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("this browser made no PNG"))), "image/png");
  });
}

function drawCaptions(context: CanvasRenderingContext2D, captions: Captions, dark: boolean, height: number): void {
  const ink = dark ? "#e5e7eb" : "#1f2937";
  context.fillStyle = ink;
  context.textAlign = "left";
  context.textBaseline = "top";
  context.font = "600 16px system-ui, sans-serif";
  context.fillText(harmless(captions.title), PAD, PAD);
  context.font = "11px system-ui, sans-serif";
  context.fillText(harmless(captions.credit), PAD, PAD + 22);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const room = Math.max(0, Math.floor((height - 140) / LINE));
  captions.legend.slice(0, room).forEach((entry, i) => drawEntry(context, entry, PAD + 52 + i * LINE, ink));
}

function drawEntry(context: CanvasRenderingContext2D, entry: LegendEntry, y: number, ink: string): void {
  const width = [0, SWATCH][entry.colours.length] ?? 5 * SWATCH;
  const scale = context.createLinearGradient(PAD, 0, PAD + width, 0);
  const last = Math.max(1, entry.colours.length - 1);
  entry.colours.forEach((colour, i) => scale.addColorStop(i / last, colour));
  context.fillStyle = scale;
  context.fillRect(PAD, y - SWATCH / 2, width, SWATCH);
  context.fillStyle = ink;
  const count = entry.count === undefined ? "" : `  ${entry.count.toLocaleString("en")}`;
  context.fillText(harmless(wordText(entry.text)) + count, PAD + width + (width && 8), y);
}
