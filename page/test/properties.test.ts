import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";

import { makeModel } from "../src/model.ts";
import { propertyRows } from "../src/properties.ts";
import { decodeFrame } from "../src/wire.ts";
import { boxScene, encodeFrame } from "./frames.ts";

test("each object has its property sets, which a frame has as lines of JSON", async () => {
  const lines = ['{"Pset_WallCommon":{"IsExternal":true,"Höhe":2.75}}', ""];
  const properties = new Uint8Array(deflateSync(new TextEncoder().encode(lines.join("\n"))));
  const model = makeModel([decodeFrame(encodeFrame("scene", {}, { properties }))]);
  assert.deepEqual(await model.properties!(0), { Pset_WallCommon: { IsExternal: true, Höhe: 2.75 } });
  assert.deepEqual(await model.properties!(1), {});
  assert.equal(makeModel([decodeFrame(boxScene())]).properties, null);
});

test("values are shown as text, with all digits to copy, and what has parts as several rows", () => {
  const parts = { type: "IfcComplexProperty", properties: { Width: 0.1, Names: ["a", null, ["b"]] } };
  const rows = propertyRows({ Span: 6.181887120424958, Count: 1234567, LoadBearing: true, None: null, Empty: "", Frame: parts });
  assert.deepEqual(rows.map(({ name, text }) => [name, text]), [
    ["Span", "6.18189"],
    ["Count", "1234567"],
    ["LoadBearing", "yes"],
    ["None", "–"],
    ["Empty", ""],
    ["Frame: type", "IfcComplexProperty"],
    ["Frame: properties: Width", "0.1"],
    ["Frame: properties: Names", "a, –, b"],
  ]);
  assert.equal(rows[0].exact, "6.181887120424958");
});
