import assert from "node:assert/strict";
import { test } from "node:test";
import { classColour } from "../src/class_colours.ts";
import { colouring, firstColour, lookOf, waysToColour } from "../src/colouring.ts";
import { distanceTitle, fileName, harmless, parsePoint, short, wordText } from "../src/format.ts";
import { Naming } from "../src/labels.ts";
import { heights } from "../src/heights.ts";
import { fromHash, toHash } from "../src/link.ts";
import { CATEGORIES, HIT, MISS, OTHER, RAMP, rgb } from "../src/look.ts";
import { packSet, unpackSet } from "../src/object_set.ts";
import { scaled, turned } from "../src/orbit.ts";
import { drawRays, FAINT, hitTimes } from "../src/rays.ts";
import { sceneKey } from "../src/checks.ts";
import { restoredView, startView } from "../src/controls.ts";
import { Store } from "../src/store.ts";
import { fileColours } from "../src/file_colours.ts";
import type { CameraState, InstancesGeometry, Label, MeshGeometry, RayColour, SceneModel } from "../src/types.ts";
import { fromRanges, toRanges } from "../src/visibility.ts";
import { sceneOfBoxes, sceneWithRays } from "./scenes.ts";

const model = sceneOfBoxes();
const start = startView(model, false);

test("a link gives back the view, short ones plain, long ones compressed", async () => {
  const view = { ...start, hidden: Array.from({ length: 4000 }, (_, at) => 2 * at), selection: [4] };
  for (const [one, kind] of [
    [{ dark: true }, "v="],
    [view, "z="],
  ] as const) {
    const hash = await toHash(one as typeof view);
    assert.ok(hash.startsWith(kind));
    assert.match(hash, /^[vz]=[A-Za-z0-9_-]+$/);
    assert.deepEqual(await fromHash(`#${hash}`), one);
  }
  assert.equal(await fromHash("#elsewhere"), null);
  await assert.rejects(fromHash("#v=AAAA"));
});

test("a restored view is checked part by part", () => {
  const valid = { ...start, hidden: [1, 2], selection: [3], colour: { by: "label" as const, label: "height" } };
  assert.deepEqual(restoredView(model, JSON.parse(JSON.stringify(valid)), start), valid);
  const damaged = {
    camera: { eye: [0, 0, null] },
    hidden: [0, 99],
    ranges: { height: [1, 2], type: [1, 2], name: "x" },
    opacity: { wall: 7, door: "x" },
    colour: { by: "label", label: "unknown" },
    cut: [{ axis: "w" }],
    selection: "all",
    dark: true,
  };
  const restored = restoredView(model, damaged, start);
  assert.deepEqual(restored, { ...start, ranges: { height: [1, 2] }, opacity: { wall: 1 }, dark: true });
  assert.equal(restoredView(model, { scene: "other.csv, 5", dark: true }, start), start);
  assert.equal(restoredView(model, { scene: sceneKey(model), dark: true }, start).dark, true);
  for (const nothing of [null, 3, "text", []]) assert.equal(restoredView(model, nothing, start), start);
});

test("a set of objects is packed as words of a label and unpacked again, whole", () => {
  const codes = Uint32Array.from({ length: 1000 }, (_, at) => (at * 7) % 3);
  const label = { name: "type", kind: "class" as const, words: ["a", "b", "c"], codes };
  const large = { ...model, objects: 1000, labels: [label], names: null };
  const bytes = Uint8Array.from(codes, (code, at) => Number(code === 1) ^ Number(at === 500 || at === 7));
  const packed = packSet(large, toRanges(bytes));
  assert.deepEqual(packed, { label: "type", words: ["b"], except: [7, 7, 500, 500] });
  const restored = restoredView(large, JSON.parse(JSON.stringify({ hidden: packed })), startView(large, false));
  assert.deepEqual(fromRanges(restored.hidden, 1000), bytes);
  assert.deepEqual(packSet(large, [3, 4]), [3, 4]);
  assert.equal(unpackSet(large, { label: "unknown", words: [], except: [] }), null);
});

test("ways to colour without effect are absent", () => {
  assert.deepEqual(
    waysToColour(model).map(({ text }) => text),
    ["type", "name", "height", "height", "one colour"],
  );
  const flat = { ...model, labels: [], classes: null, names: null };
  assert.deepEqual(
    waysToColour({ ...flat, geometries: [] }).map(({ text }) => text),
    ["one colour"],
  );
  assert.deepEqual(firstColour(model), { by: "class" });
});

test("the legend has the colours of the objects, with counts of what is shown", () => {
  const made = colouring(model, { by: "class" });
  assert.deepEqual([...made.rgb.subarray(0, 3)], rgb(classColour("wall")!.colour));
  assert.deepEqual([...made.rgb.subarray(6, 9)], rgb(classColour("door")!.colour));
  assert.deepEqual([...colouring(model, { by: "label", label: "type" }).rgb.subarray(6, 9)], rgb(CATEGORIES[1]));
  const legend = made.legend(Uint8Array.of(1, 0, 1, 0, 1));
  assert.deepEqual(
    legend.map(({ text, count }) => [text, count]),
    [
      ["wall", 2],
      ["door", 1],
    ],
  );
  const missing = made.legend(Uint8Array.of(0, 0, 0, 1, 0));
  assert.deepEqual(missing, [{ text: "(none)", colours: [OTHER], count: 1 }]);
  const numbers = colouring(model, { by: "label", label: "height" });
  assert.deepEqual([...numbers.rgb.subarray(0, 3)], rgb(RAMP[0]));
  assert.deepEqual([...numbers.rgb.subarray(12)], rgb(OTHER));
  assert.equal(numbers.legend(new Uint8Array(5).fill(1)).at(-1)!.text, "no value");
});

test("what is hidden has opacity 0, a class its own", () => {
  const store = new Store(model, { ...start, hidden: [1, 1], opacity: { wall: 0.5 } });
  const alphas = lookOf(store).rgba.filter((_, at) => at % 4 === 3);
  assert.deepEqual([...alphas], [128, 0, 255, 255, 128]);
});

test("rays end at their hits", () => {
  const scene = sceneWithRays();
  assert.deepEqual([...hitTimes(scene, scene.rays!)], [0.5, 8, Infinity, Infinity]);
});

test("drawn rays have the colours of the legend; what is off is not drawn", () => {
  const scene = sceneWithRays();
  const plain = colouring(scene, { by: "plain" });
  const hits = { hits: true, misses: false, points: true, colour: "status" } as const;
  const { rgba, legend } = drawRays(scene, scene.rays!, hits, plain);
  assert.deepEqual([...rgba.subarray(0, 4)], [...rgb(HIT), 255]);
  assert.deepEqual([...rgba.subarray(8)], new Array(8).fill(0));
  assert.deepEqual(legend, [{ text: "hit", colours: [HIT], count: 2 }]);
  const byObject = drawRays(scene, scene.rays!, { ...hits, misses: true, colour: "object" }, plain);
  assert.deepEqual(
    byObject.legend.map(({ text, count }) => [text, count]),
    [
      ["wall north", 2],
      ["miss", 2],
    ],
  );
});

test("rays by object have the colours of the objects where these have a legend, so that one colour is one thing", () => {
  const scene = sceneWithRays();
  scene.table!.object.set([2, 1]);
  const view = { hits: true, misses: true, points: true, colour: "object" } as const;
  const ways = [{ by: "class" }, { by: "label", label: "height" }, { by: "height" }] as const;
  for (const objects of ways.map((way) => colouring(scene, way))) {
    const { rgba, legend } = drawRays(scene, scene.rays!, view, objects);
    for (const [ray, object] of [[0, 2], [1, 1]]) {
      assert.deepEqual(rgba.subarray(4 * ray, 4 * ray + 3), objects.rgb.subarray(3 * object, 3 * object + 3));
    }
    assert.deepEqual(legend.map(({ text }) => text), ["miss"]);
  }
  const { legend } = drawRays(scene, scene.rays!, view, colouring(scene, { by: "plain" }));
  assert.deepEqual(legend.map(({ colours }) => colours[0]), [CATEGORIES[0], CATEGORIES[1], MISS]);
});

test("counts are of all rays of the file, also where a sample is drawn; misses are faint", () => {
  const scene = sceneWithRays();
  const total = 50_000;
  const row = Uint32Array.of(0, 20_000, 49_999);
  const object = Int32Array.from({ length: total }, (_, k) => (k % 5 ? -1 : k % 2));
  const numbers = Float64Array.from(object, (hit) => (hit < 0 ? Infinity : 2 - hit));
  numbers[5] = 9;
  const model = { ...scene, table: { total, t: numbers, distance: numbers, object } };
  const sample = { ...scene.rays!, total, row };
  const plain = colouring(model, { by: "plain" });
  const legendOf = (colour: RayColour, inside?: Uint8Array) =>
    drawRays(model, sample, { hits: true, misses: true, points: true, colour }, plain, inside);
  const { legend, rgba } = legendOf("status");
  assert.deepEqual(
    legend.map((entry) => [entry.text, entry.count]),
    [["hit", 10_000], ["miss", 40_000], ["3 of 50,000 rays drawn, an even sample", undefined]],
  );
  assert.deepEqual([rgba[3], rgba[7], rgba[11]], [255, 255, FAINT]);
  assert.deepEqual(legendOf("object").legend.slice(0, 2).map(({ count }) => count), [5000, 5000]);
  assert.match(legendOf("distance").legend[0].text, /up to 9$/, "of a ray that is not drawn");
  const inside = Uint8Array.from(object, (_, k) => Number(k < 10));
  const some = legendOf("status", inside);
  assert.deepEqual(some.legend.map((entry) => entry.count), [2, 8, undefined]);
  assert.equal(some.legend[2].text, "1 of 10 rays drawn, an even sample");
  assert.deepEqual([some.rgba[3], some.rgba[7]], [255, 0]);
});

test("heights are the middles of bounds", () => {
  assert.deepEqual([...heights(model)], [0.5, 1.5, 2.5, 3.5, 4.5]);
});

test("numbers and points are read and written", () => {
  assert.deepEqual(parsePoint(" (1, 2.5,-3) "), [1, 2.5, -3]);
  assert.deepEqual(parsePoint("1 2 3"), [1, 2, 3]);
  assert.equal(parsePoint("1, 2"), null);
  assert.equal(parsePoint("1, 2, x"), null);
  assert.equal(short(1234.56789), "1234.57");
  const titles = ["", "m", "ft"].map((unit) => distanceTitle({ ...model, unit }));
  assert.deepEqual(titles, ["distance", "metres", "distance, ft"]);
  assert.equal(fileName("a b/c.ifc", "png"), "a-b-c.png");
});

test("keys turn the camera at the same distance, never past the up axis", () => {
  const camera = {
    eye: [10, 0, 0],
    target: [0, 0, 0],
    up: "z",
    orthographic: false,
    height: 5,
    fov: 45,
  } as CameraState;
  const side = turned(camera, Math.PI / 2, 0).eye;
  assert.ok(Math.hypot(side[0], side[1] - 10, side[2]) < 1e-12);
  const top = turned(camera, 0, 9).eye;
  assert.ok(Math.abs(Math.hypot(...top) - 10) < 1e-12 && top[0] > 0 && top[2] > 9.9);
  assert.deepEqual(scaled(camera, 0.5).eye, [5, 0, 0]);
});

test("a name that turns its direction shows as it is, and an empty word has a text", () => {
  assert.equal(harmless("exe\u202egnp.jpg"), "exe⟨U+202E⟩gnp.jpg");
  assert.equal(harmless("a\u0000\u2066b"), "a⟨U+0000⟩⟨U+2066⟩b");
  for (const name of ["Straße 5", "شارع", "ना\u200dम", "two\nlines\t"]) assert.equal(harmless(name), name);
  assert.deepEqual(["", " \n", "wall"].map(wordText), ["(empty)", "(empty)", "wall"]);
  const blank = { ...model, labels: [{ name: "name", kind: "text" as const, values: [" ", "", "x", null, "y"] }], classes: null };
  const naming = new Naming({ ...blank, ids: [" ", "", "c", "d", "e"] });
  assert.deepEqual([0, 1, 2, 3].map((object) => naming.full(object)), ["box #0", "box #1", "box x", "box d"]);
});

test("a geometry may have a colour of its own", () => {
  const [row] = model.geometries;
  const own = { ...model, geometries: [{ ...row, color: "#112233", firstObject: 1, objects: 2 }] };
  const colours = colouring(own, { by: "plain" }).rgb;
  assert.deepEqual([...colours.slice(3, 9)], [0x11, 0x22, 0x33, 0x11, 0x22, 0x33]);
  assert.notDeepEqual([...colours.slice(0, 3)], [0x11, 0x22, 0x33]);
});

/** The boxes, of which the first two and the last have colours of the file: red glass, red glass, and green. */
const painted = {
  ...model,
  geometries: [{ ...model.geometries[0], paletteRows: Uint8Array.of(1, 1, 0, 0, 2) }],
  palette: Uint8Array.of(0, 0, 0, 0, 255, 0, 0, 51, 0, 255, 0, 255),
};

test("colours of the file come first, then those of classes", () => {
  assert.deepEqual(waysToColour(painted)[0], { colour: { by: "file" }, text: "file" });
  const colour = firstColour(painted);
  assert.deepEqual(colour, { by: "file" });
  const store = new Store(painted, { ...start, colour, hidden: [1, 1], opacity: { wall: 0.5 } });
  const { byFile, rgba } = lookOf(store);
  assert.equal(byFile, true);
  assert.deepEqual([...rgba.subarray(0, 8)], [255, 0, 0, 26, 0, 0, 0, 0]);
  assert.deepEqual([...rgba.subarray(8)], [...rgb(classColour("door")!.colour), 255, ...rgb(OTHER), 255, 0, 255, 0, 128]);
  const legend = colouring(painted, colour).legend(new Uint8Array(5).fill(1));
  assert.deepEqual(legend[0], { text: "wall", colours: ["#aa5500"], count: 3 });
  const restored = (given: unknown, of: SceneModel = painted) => restoredView(of, { colour: given }, startView(of, false)).colour;
  assert.deepEqual([restored({ by: "file" }), restored({ by: "plain" })], [{ by: "file" }, { by: "plain" }]);
  assert.deepEqual(restored({ by: "file" }, { ...model, palette: null }), { by: "class" });
});

test("objects of several colours have their mean, and are as opaque as their programs make them", () => {
  const mesh = { ...model.geometries[0], type: "mesh" as const, objects: 2, triangleObjects: Uint32Array.of(0, 0, 0, 1) };
  const geometry = { ...mesh, paletteRows: Uint8Array.of(1, 2, 0, 0) } as unknown as MeshGeometry;
  const scene = { ...painted, objects: 2, geometries: [geometry], labels: [], classes: null, names: null };
  assert.deepEqual([...fileColours(scene)], [128, 128, 0, 153, 0, 0, 0, 0]);
  assert.deepEqual([...colouring(scene, { by: "file" }).opacity!], [255, 255]);
  const copies = { type: "instances", firstObject: 0, objects: 2, base: { paletteRows: Uint8Array.of(1, 1) } };
  const copied = { ...scene, geometries: [copies as unknown as InstancesGeometry] };
  assert.deepEqual([...fileColours(copied)], [255, 0, 0, 51, 255, 0, 0, 51]);
});

test("classes have the colours of what they name, glass is translucent", () => {
  const words = ["IfcWallStandardCase", "WallSurface", "BuildingPart", "walls"].map((name) => classColour(name)?.colour);
  assert.equal(new Set(words).size, 1);
  const same = [["IfcWindow", "Glass"], ["WaterBody", "river"], ["PlantCover", "Trees"], ["LandUse", "soil"], ["IfcRoof", "RoofSurface"]];
  for (const [a, b] of same) assert.deepEqual(classColour(a), classColour(b), a);
  assert.ok(classColour("IfcWindow")!.opacity < 255);
  assert.deepEqual(["Car", "IfcFurnishingElement", "Wallaby", "", "12"].map(classColour), [null, null, null, null, null]);
  const glass = { ...model, labels: [{ ...model.labels[0], words: ["wall", "window"] } as Label] };
  assert.deepEqual([...colouring(glass, { by: "class" }).opacity!.slice(1, 4)], [255, 110, 255]);
});
