import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { LiveCaster, type LiveEvents, type Run, type Socket } from "../src/live.ts";
import type { Ray, SceneModel } from "../src/types.ts";
import { boxScene, encodeFrame } from "./frames.ts";

class Wire implements Socket {
  binaryType: BinaryType = "blob";
  bufferedAmount = 0;
  onopen = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  onerror = null;
  readonly sent: (string | Uint8Array)[] = [];

  send(data: string | Uint8Array): void {
    this.sent.push(data);
  }

  close(): void {
    this.onclose?.();
  }

  receive(frame: ArrayBuffer): void {
    this.onmessage?.({ data: frame });
  }

  /** The last message that is JSON. */
  get request(): { kind: string; seq: number; [field: string]: unknown } {
    return JSON.parse(this.sent.filter((one) => typeof one === "string").at(-1) as string);
  }
}

const RAY: Ray = { origin: [0, 1.5, 1.5], direction: [1, 0, 0], tMin: 0, tMax: Infinity };
let wires: Wire[] = [];
let log: string[] = [];
let models: SceneModel[] = [];

const events: LiveEvents = {
  model: (model, again) => void (models.push(model), log.push(`model ${again}`)),
  connection: (state, text) => void log.push(`${state} ${text}`.trim()),
  progress: (text, fraction) => void log.push(`${text} ${fraction}`),
  error: (text) => void log.push(`error ${text}`),
  answer: (answer) => void log.push(`answer ${answer.total}`),
  picture: async () => null,
  view: (view) => void log.push(`view ${JSON.stringify(view)}`),
};

function connected(session = "s"): LiveCaster {
  const caster = new LiveCaster("ws://here/socket", events, () => (wires.push(new Wire()), wires.at(-1)!));
  wires[0].receive(encodeFrame("begin", { session, version: "1", view: {} }));
  return caster;
}

function hits(seq: number): ArrayBuffer {
  const header = { seq, total: 1, origin: [0, 1.5, 1.5], direction: [1, 0, 0], t_min: 0, t_max: null, row: null };
  const [object, geometry, one] = [Int32Array.of(0), Uint32Array.of(0), Float64Array.of(1)];
  return encodeFrame("hits", header, { object, geometry, primitive: Float64Array.of(0), t: one, t_enter: one, t_exit: Float64Array.of(2) });
}

beforeEach(() => {
  [wires, log, models] = [[], [], []];
  mock.timers.reset();
});

test("a pick is answered by its number, whatever comes between", async () => {
  const caster = connected();
  const answer = caster.pick(RAY);
  const { kind, seq, t_max, origin } = wires[0].request;
  assert.deepEqual([kind, t_max, origin], ["pick", null, RAY.origin]);
  wires[0].receive(hits(seq + 1));
  wires[0].receive(hits(seq));
  assert.deepEqual((await answer).hits, [{ object: 0, geometry: 0, primitive: 0, t: 1, tEnter: 1, tExit: 2 }]);
  assert.deepEqual((await answer).ray, RAY);
});

test("an error rejects its request; one without a number is a message", async () => {
  const caster = connected();
  const answer = caster.row(7);
  wires[0].receive(encodeFrame("error", { seq: wires[0].request.seq, text: "no row 7" }));
  await assert.rejects(answer, /no row 7/);
  wires[0].receive(encodeFrame("error", { text: "something" }));
  wires[0].receive(new ArrayBuffer(2));
  assert.deepEqual(log.slice(-2), ["error something", "error a frame has at least 4 bytes; got 2"]);
});

test("a scene is shown when all frames announced have come, then the mask is sent", () => {
  const caster = connected();
  caster.setPickable(Uint8Array.of(1));
  wires[0].receive(boxScene({ follow: ["table"] }));
  assert.equal(models.length, 0);
  const table = { t: Float64Array.of(1), object: Int32Array.of(0), distance: Float64Array.of(1) };
  wires[0].receive(encodeFrame("table", { total: 1 }, table));
  assert.deepEqual(models[0].table?.t, table.t);
  assert.deepEqual(wires[0].sent.at(-1), Uint8Array.of(1, 1));
  wires[0].receive(encodeFrame("table", { total: 1 }, { ...table, t: Float64Array.of(5) }));
  assert.equal(models[1].table?.t[0], 5);
  assert.equal(models[1].geometries, models[0].geometries);
});

test("a lost connection rejects what is open and comes back with the mask", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const caster = connected();
  wires[0].receive(boxScene());
  caster.setPickable(Uint8Array.of(0));
  const answer = caster.pick(RAY);
  wires[0].close();
  await assert.rejects(answer, /lost/);
  await assert.rejects(caster.pick(RAY), /lost/);
  assert.match(caster.reason!, /tries again/);
  mock.timers.tick(500);
  assert.equal(wires.length, 2);
  wires[1].receive(encodeFrame("begin", { session: "s", version: "1", view: {} }));
  wires[1].receive(boxScene());
  assert.equal(caster.reason, null);
  assert.deepEqual(log.at(-1), "model true");
  assert.deepEqual(wires[1].sent, [Uint8Array.of(1, 0)]);
  mock.timers.reset();
});

test("the page tries at most every eight seconds, and says why a server ended", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const caster = connected();
  wires[0].receive(encodeFrame("end", { text: "Python has closed the view." }));
  for (const pause of [500, 1000, 2000, 4000, 8000, 8000]) {
    wires.at(-1)!.close();
    const count = wires.length;
    mock.timers.tick(pause - 1);
    assert.equal(wires.length, count);
    mock.timers.tick(1);
    assert.equal(wires.length, count + 1);
  }
  assert.ok(log.includes("ended Python has closed the view."));
  assert.notEqual(caster.reason, null);
  mock.timers.reset();
});

test("a file is sent in parts and ends when the server says so", async () => {
  const caster = connected();
  const fractions: number[] = [];
  const size = (1 << 18) + 10;
  const done = caster.upload(new File([new Uint8Array(size).fill(7)], "house.ifc"), (fraction) => fractions.push(fraction));
  const { kind, seq, name } = wires[0].request;
  assert.deepEqual([kind, name, wires[0].request.size], ["upload", "house.ifc", size]);
  while (fractions.length < 2) await new Promise((resolve) => setImmediate(resolve));
  wires[0].receive(encodeFrame("state", { seq, text: "2 rays added" }));
  assert.equal(await done, "2 rays added");
  const parts = wires[0].sent.filter((one) => typeof one !== "string") as Uint8Array[];
  assert.equal(parts.reduce((sum, part) => sum + part.length - 1, 0), size);
  assert.ok(parts.every((part) => part[0] === 2 && part.length <= 1 << 18));
  assert.deepEqual(parts.at(-1), Uint8Array.of(2));
  assert.equal(fractions.at(-1), 1);
});

test("a refused upload stops sending", async () => {
  const caster = connected();
  const done = caster.upload(new File([new Uint8Array(9 << 20)], "big.ply"), () => undefined);
  wires[0].receive(encodeFrame("error", { seq: wires[0].request.seq, text: "too large" }));
  await assert.rejects(done, /too large/);
  assert.ok(wires[0].sent.length < 4);
});

test("what Python changes is an event, and what stays of a scene comes with it", () => {
  const caster = connected();
  wires[0].receive(encodeFrame("view", { view: { selection: [1] } }));
  assert.equal(log.at(-1), 'view {"selection":[1]}');
  const runs: (Run[] | null)[] = [];
  const { model } = events;
  events.model = (_, __, given) => void runs.push(given);
  wires[0].receive(encodeFrame("renumber", { runs: [[0, 2, 3]] }));
  wires[0].receive(boxScene());
  wires[0].receive(boxScene());
  events.model = model;
  assert.deepEqual(runs, [[[0, 2, 3]], null]);
  caster.reportSelection([0]);
  assert.deepEqual(wires[0].sent.at(-1), Uint8Array.of(4, 1));
  caster.reportPick({ ...RAY, tMax: 5 });
  const { seq: _, ...report } = wires[0].request;
  assert.deepEqual(report, { kind: "picked", origin: RAY.origin, direction: RAY.direction, t_min: 0, t_max: 5 });
});

test("the picture of Python has its scale", async () => {
  connected();
  const scales: number[] = [];
  const { picture } = events;
  events.picture = async (scale) => (scales.push(scale), null);
  wires[0].receive(encodeFrame("picture", { scale: 4 }));
  await Promise.resolve();
  events.picture = picture;
  assert.deepEqual(scales, [4]);
});
