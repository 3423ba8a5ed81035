/** Casts the rays of a file in the scene of a file: `node answers.js SCENE OUTPUT`, for tests in Python. */

import { readFileSync, writeFileSync } from "node:fs";

import { Engine, type ExactHit } from "../src/engine/engine.ts";
import { makeModel, unpackBits } from "../src/model.ts";
import { sampledRay } from "../src/saved.ts";
import { decodeFrames } from "../src/wire.ts";

const [input, output] = process.argv.slice(2);
const content = readFileSync(input);
const frames = decodeFrames(content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength) as ArrayBuffer);
const model = makeModel(frames);
const bits = frames.find((frame) => frame.kind === "mask")?.arrays.get("bits");
const pickable = bits instanceof Uint8Array ? unpackBits(bits, model.objects) : null;
const engine = new Engine(model);
const { rays } = model;
if (rays === null) throw new Error("the file has no rays");

const rows: number[] = [];
for (let k = 0; k < rays.row.length; k++) {
  const answer = engine.cast(sampledRay(rays, k), pickable);
  if (answer.total !== answer.hits.length) throw new Error("the list is cut");
  for (const hit of answer.hits) rows.push(k, ...numbersOf(hit));
}
writeFileSync(output, new Uint8Array(Float64Array.from(rows).buffer));

function numbersOf({ geometry, object, primitive, inner, t, tEnter, tExit }: ExactHit): number[] {
  return [geometry, object, primitive, inner, t, tEnter, tExit];
}
