/** A cube in a corner of the scene that turns with the camera: its faces are the standard views. */

import type { Actions } from "../actions.ts";
import { VIEWS } from "../controls.ts";
import { el } from "../dom.ts";
import { basisOf, standardDirection } from "../stage/camera.ts";
import { dot } from "../stage/vec.ts";
import type { CameraState, StandardView, Vec3 } from "../types.ts";

/** Half an edge of the cube, in pixels. */
const HALF = 22;
/** A face is shown once the camera sees more of it than its edge. */
const LEAST_SEEN = 0.08;

export function viewCube({ stage, store }: Actions): HTMLElement {
  const faces = VIEWS.filter((view) => view !== "iso").map((view) => {
    const act = () => stage.standardView(view);
    const attributes = { type: "button", title: `view: ${view}`, "data-test": `cube-${view}`, tabindex: -1, onclick: act };
    return { view, element: el("button", attributes, view) };
  });
  store.watch(["camera"], () => {
    const camera = store.state.camera ?? stage.camera();
    for (const { view, element } of faces) place(element, view, camera);
  });
  return el("div", { class: "view-cube", role: "group", "aria-label": "standard views" }, ...faces.map(({ element }) => element));
}

/** Draws a face without perspective: its image is that of two directions and of its middle. */
function place(element: HTMLButtonElement, view: StandardView, camera: CameraState): void {
  const { right, up, forward } = basisOf(camera);
  const toEye = standardDirection(view, camera.up);
  const face = basisOf({ ...camera, eye: toEye, target: [0, 0, 0] });
  const across = (direction: Vec3) => dot(direction, right);
  const down = (direction: Vec3) => -dot(direction, up);
  const middle = [HALF * across(toEye), HALF * down(toEye)];
  const image = [across(face.right), down(face.right), -across(face.up), -down(face.up), ...middle];
  element.style.transform = `matrix(${image.join(", ")})`;
  element.disabled = -dot(toEye, forward) < LEAST_SEEN;
}
