/** Answers of the server, over a WebSocket that is opened again when it closes. */

import { decodeAnswer, rayFields, UPLOAD_PART, type Request } from "./messages.ts";
import { encodeMask, encodePart, encodePicturePart, encodeRequest, encodeSelection } from "./messages.ts";
import { isOfScene, makeModel, withFrame } from "./model.ts";
import type { AnswerFrame, Begin, FileHeader, Renumber, SceneFrame, ViewFields } from "./schema.ts";
import type { Answer, Caster, Numbers, Ray, SceneModel, ViewState } from "./types.ts";
import { decodeFrame, type Frame } from "./wire.ts";

export type Connection = "connecting" | "open" | "lost" | "ended";

export interface LiveEvents {
  /**
   * A scene is complete; `again` where this session's server has sent it before, after a reconnect; runs of the
   * objects that stay, where the view stays.
   */
  model(model: SceneModel, again: boolean, runs: Run[] | null): void;
  /** Python changes the view. */
  view(view: ViewFields): void;
  connection(state: Connection, text: string): void;
  progress(text: string, fraction: number): void;
  /** An error that answers no request. */
  error(text: string): void;
  /** A ray that the server casts by itself: a click in Python. */
  answer(answer: Answer): void;
  /** The picture that Python saves, of `scale` pixels for one of the page; null if there is none. */
  picture(scale: number): Promise<Blob | null>;
}

/** Objects that have other numbers now: the first number before, the first one now, how many. */
export type Run = Renumber["runs"][number];

/** The part of WebSocket that is used. */
export interface Socket {
  binaryType: BinaryType;
  readonly bufferedAmount: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: (() => void) | null;
  onerror: (() => void) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

interface Pending {
  resolve(frame: Frame): void;
  reject(error: Error): void;
}

const FIRST_DELAY = 500;
const LONGEST_DELAY = 8000;
const LOST = "The connection to the server is lost; the page tries again.";
/** Upload parts wait while the socket has more than this many bytes to send. */
const MOST_BUFFERED = 4 * UPLOAD_PART;

export class LiveCaster implements Caster {
  readonly live = true;
  reason: string | null = "The page connects to the server.";
  /** What Python has set of the view, for a page that opens. */
  view: ViewFields = {};
  private socket: Socket | null = null;
  private readonly pending = new Map<number, Pending>();
  private seq = 0;
  private delay = FIRST_DELAY;
  private pickable: Uint8Array | null = null;
  private session: string | null = null;
  private again = false;
  private ended = "";
  /** The frames of a scene that is on its way, and the kinds that are still to come. */
  private frames: Frame[] = [];
  private awaited = new Set<string>();
  private runs: Run[] | null = null;
  private model: SceneModel | null = null;

  constructor(
    private readonly url: string,
    private readonly events: LiveEvents,
    private readonly open: (url: string) => Socket = (address) => new WebSocket(address) as Socket,
  ) {
    this.connect();
  }

  async pick(ray: Ray, row?: number): Promise<Answer> {
    const answer = decodeAnswer(await this.request({ kind: "pick", ...rayFields(ray) }));
    return row === undefined ? answer : { ...answer, row };
  }

  async row(row: number): Promise<Answer> {
    return { ...decodeAnswer(await this.request({ kind: "ray", row })), row };
  }

  setPickable(pickable: Uint8Array): void {
    // The server casts all rays of the table for each mask.
    if (this.pickable?.length === pickable.length && pickable.every((byte, at) => byte === this.pickable![at])) return;
    this.pickable = pickable.slice();
    this.sendMask();
  }

  async save(state: ViewState): Promise<{ name: string; content: Uint8Array }> {
    const frame = await this.request({ kind: "save", state });
    return { name: (frame.header as FileHeader).name, content: bytes(frame.arrays.get("content")) };
  }

  async upload(file: File, progress: (fraction: number) => void): Promise<string> {
    const answer = this.request({ kind: "upload", name: file.name, size: file.size });
    const seq = this.seq;
    answer.catch(() => undefined);
    for (let start = 0; start < file.size && this.pending.has(seq); start += UPLOAD_PART) {
      const part = await file.slice(start, start + UPLOAD_PART).arrayBuffer();
      await this.drained();
      if (!this.pending.has(seq)) break;
      this.socket?.send(encodePart(new Uint8Array(part)) as Uint8Array<ArrayBuffer>);
      progress(Math.min(1, (start + UPLOAD_PART) / file.size));
    }
    if (this.pending.has(seq)) this.socket?.send(encodePart(new Uint8Array()) as Uint8Array<ArrayBuffer>);
    const { header } = await answer;
    return header.kind === "state" ? header.text : "";
  }

  /** Reports a ray that the user has picked with. */
  reportPick(ray: Ray): void {
    if (this.reason === null) this.socket?.send(encodeRequest(++this.seq, { kind: "picked", ...rayFields(ray) }));
  }

  /** Reports the objects that are selected. */
  reportSelection(selection: readonly number[]): void {
    if (this.reason !== null || this.model === null) return;
    this.socket?.send(encodeSelection(selection, this.model.objects) as Uint8Array<ArrayBuffer>);
  }

  /** Sends the picture that Python saves; one of 0 bytes says that there is none. */
  private async sendPicture(scale: number): Promise<void> {
    const picture = await this.events.picture(scale).catch(() => null);
    const content = picture === null ? new Uint8Array() : new Uint8Array(await picture.arrayBuffer());
    const send = (part: Uint8Array) => this.socket?.send(encodePicturePart(part) as Uint8Array<ArrayBuffer>);
    for (let start = 0; start < content.length; start += UPLOAD_PART) send(content.subarray(start, start + UPLOAD_PART));
    send(new Uint8Array());
  }

  private async drained(): Promise<void> {
    while (this.socket !== null && this.socket.bufferedAmount > MOST_BUFFERED) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  private request(request: Request): Promise<Frame> {
    const seq = ++this.seq;
    const socket = this.socket;
    if (socket === null || this.reason !== null) return Promise.reject(new Error(this.reason ?? LOST));
    return new Promise((resolve, reject) => {
      this.pending.set(seq, { resolve, reject });
      socket.send(encodeRequest(seq, request));
    });
  }

  private sendMask(): void {
    if (this.reason !== null || this.pickable === null || this.pickable.length !== this.model?.objects) return;
    this.socket?.send(encodeMask(this.pickable) as Uint8Array<ArrayBuffer>);
  }

  private connect(): void {
    const socket = this.open(this.url);
    this.socket = socket;
    this.ended = "";
    socket.binaryType = "arraybuffer";
    this.events.connection("connecting", this.reason ?? "");
    socket.onmessage = (event) => this.receive(event.data);
    socket.onclose = () => this.lose(socket);
  }

  private lose(socket: Socket): void {
    if (this.socket !== socket) return;
    this.socket = null;
    this.frames = [];
    this.runs = null;
    this.awaited.clear();
    this.reason = this.ended === "" ? LOST : this.ended;
    for (const request of this.pending.values()) request.reject(new Error(this.reason));
    this.pending.clear();
    this.events.connection(this.ended === "" ? "lost" : "ended", this.reason);
    setTimeout(() => this.connect(), this.delay);
    this.delay = Math.min(2 * this.delay, LONGEST_DELAY);
  }

  private receive(data: unknown): void {
    try {
      if (!(data instanceof ArrayBuffer)) throw new Error("the server sent text; frames are binary");
      this.handle(decodeFrame(data));
    } catch (error) {
      this.events.error(error instanceof Error ? error.message : String(error));
    }
  }

  private handle(frame: Frame): void {
    const { header } = frame;
    if (isOfScene(header)) this.sceneFrame(frame, header);
    else if (header.kind === "begin") this.begin(header);
    else if (header.kind === "renumber") this.runs = header.runs;
    else if (header.kind === "view") this.events.view(header.view);
    else if (header.kind === "progress") this.events.progress(header.text, header.fraction);
    else if (header.kind === "end") this.ended = header.text;
    else if (header.kind === "picture") void this.sendPicture(header.scale);
    else if (header.kind === "hits" && header.seq === 0) this.events.answer(decodeAnswer(frame));
    else this.answer(frame, header);
  }

  private begin({ session, view }: Begin): void {
    this.again = session === this.session;
    this.session = session;
    this.view = view;
    this.delay = FIRST_DELAY;
    this.reason = null;
    this.events.connection("open", "");
  }

  /** Collects the frames of a scene; a frame that was not announced changes the model that is there. */
  private sceneFrame(frame: Frame, header: SceneFrame): void {
    if (header.kind === "scene") {
      this.frames = [frame];
      this.awaited = new Set(header.follow);
    } else if (this.awaited.delete(frame.kind)) {
      this.frames.push(frame);
    } else if (this.model !== null) {
      this.model = withFrame(this.model, frame);
      this.events.model(this.model, false, null);
      return;
    }
    if (this.awaited.size > 0 || this.frames.length === 0) return;
    const model = makeModel(this.frames);
    this.frames = [];
    this.show(model);
  }

  private show(model: SceneModel): void {
    this.model = model;
    this.events.model(model, this.again, this.runs);
    this.again = false;
    this.runs = null;
    this.sendMask();
  }

  private answer(frame: Frame, header: AnswerFrame): void {
    const seq = header.seq ?? 0;
    const request = this.pending.get(seq);
    const error = header.kind === "error" ? header.text : null;
    if (request === undefined) {
      if (error !== null) this.events.error(error);
      return;
    }
    this.pending.delete(seq);
    if (error === null) request.resolve(frame);
    else request.reject(new Error(error));
  }
}

function bytes(content: Numbers | undefined): Uint8Array {
  if (content instanceof Uint8Array) return content;
  throw new Error("the server's answer has no file");
}
