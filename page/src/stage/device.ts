/** The canvases, and the device that draws on them. */

import * as THREE from "three";

/** Returns the renderer of a canvas, which draws when it is called and changes no colours. */
export function rendererOf(canvas: HTMLCanvasElement): THREE.WebGLRenderer {
  const context = canvas.getContext("webgl2", { antialias: false, depth: false, stencil: false, alpha: false });
  if (!context) {
    throw new Error("the drawing needs WebGL 2, which this browser does not have: allow it, or use another browser");
  }
  const renderer = new THREE.WebGLRenderer({ canvas, context });
  renderer.autoClear = false;
  renderer.sortObjects = false;
  renderer.info.autoReset = false;
  renderer.outputColorSpace = THREE.LinearSRGBColorSpace;
  return renderer;
}

/** Returns the name of the device that draws. */
export function nameOf(context: WebGLRenderingContext | WebGL2RenderingContext): string {
  const info = context.getExtension("WEBGL_debug_renderer_info");
  return String(context.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : context.RENDERER));
}

/** Returns a canvas over another, which no pointer meets. */
export function flatCanvas(below: HTMLCanvasElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  Object.assign(canvas.style, {
    position: "absolute",
    inset: "0",
    width: "100%",
    height: "100%",
    pointerEvents: "none",
  });
  canvas.setAttribute("aria-hidden", "true");
  below.after(canvas);
  return canvas;
}
