/**
 * Casts the rays of a file in its scene, or explains them: `node answers.js SCENE OUTPUT`, for tests in Python.
 *
 * Frames are those of a saved page; `mask` has a bit an object; `pairs` has a geometry and a primitive for each ray.
 */

import { readFileSync, writeFileSync } from "node:fs";

import { Engine, type ExactHit } from "../src/engine/engine.ts";
import { explainHit } from "../src/explanation.ts";
import { makeModel, unpackBits } from "../src/model.ts";
import { sampledRay } from "../src/saved.ts";
import type { Explanation, Numbers } from "../src/types.ts";
import { decodeFrames } from "../src/wire.ts";

const [input, output] = process.argv.slice(2);
const content = readFileSync(input);
const frames = decodeFrames(content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength) as ArrayBuffer);
const model = makeModel(frames);
const { rays } = model;
if (rays === null) throw new Error("the file has no rays");
const pairs = frames.find((frame) => frame.kind === "pairs")?.arrays;
writeFileSync(output, pairs === undefined ? answers() : JSON.stringify(explanations(pairs.get("geometry")!, pairs.get("primitive")!)));

/** Returns eight numbers for each hit. */
function answers(): Uint8Array {
  const bits = frames.find((frame) => frame.kind === "mask")?.arrays.get("bits");
  const pickable = bits instanceof Uint8Array ? unpackBits(bits, model.objects) : null;
  const engine = new Engine(model);
  const rows: number[] = [];
  for (let k = 0; k < rays!.row.length; k++) {
    const answer = engine.cast(sampledRay(rays!, k), pickable);
    if (answer.total !== answer.hits.length) throw new Error("the list is cut");
    for (const hit of answer.hits) rows.push(k, ...numbersOf(hit));
  }
  return new Uint8Array(Float64Array.from(rows).buffer);
}

function numbersOf({ geometry, object, primitive, inner, t, tEnter, tExit }: ExactHit): number[] {
  return [geometry, object, primitive, inner, t, tEnter, tExit];
}

function explanations(geometry: Numbers, primitive: Numbers): Explanation[] {
  return Array.from(rays!.row, (_, k) => {
    const hit = { object: NaN, geometry: geometry[k], primitive: primitive[k], t: NaN, tEnter: NaN, tExit: NaN };
    return explainHit(model, sampledRay(rays!, k), hit);
  });
}
