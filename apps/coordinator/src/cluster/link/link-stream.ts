/** `LinkStream`: stream of ordered messages over a link, with control messages that may overtake them. `QueuedStream` implements it. */
import { FrameType, frameHead } from './frame.js';
import type { LossReason } from './link-error.js';
import type { Outbox } from './outbox.js';

export type StreamEnd =
  /** Closed after all messages of the closing side were delivered. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'aborted'; readonly code: string; readonly byPeer: boolean }
  | { readonly kind: 'link_lost'; readonly reason: LossReason };

export interface StreamHandlers {
  onMessage(bytes: Uint8Array, isText: boolean): void;
  onControl?(bytes: Uint8Array): void;
  /** The queue has room again, after `send` returned false. */
  onDrain?(): void;
  /** Called once, after all other handlers. */
  onClosed(end: StreamEnd): void;
}

export interface LinkStream {
  readonly peer: string;
  readonly kind: string;
  readonly isOpen: boolean;
  readonly queuedBytes: number;
  /**
   * Sends a message, whose bytes must not change afterwards. Aborts the stream if its queue exceeds the maximum.
   *
   * @returns False if the stream has ended, or if the caller should wait for `onDrain`.
   */
  send(bytes: Uint8Array, isText: boolean): boolean;
  /** Sends a short control message, which may overtake messages of `send`. Control messages arrive in order. */
  sendControl(bytes: Uint8Array): void;
  /** Ends the stream once all queued messages are sent. Further messages of the peer are dropped. */
  close(): void;
  /** Ends the stream at once, and drops queued messages. */
  abort(code: string): void;
}

/** Members of `StreamTable`, which holds all streams of a link, that a stream uses. */
export interface StreamHost {
  readonly peer: string;
  readonly outbox: Outbox;
  /** Whether a stream may send without queueing: the window has room, and no other stream waits. */
  canSendDirectly(bytes: number): boolean;
  /** Adds a stream with queued messages to the streams that wait for the window. */
  enqueue(stream: QueuedStream): void;
  /** Called after a data frame was added to the outbox. */
  scheduleFlush(): void;
  sendStreamControl(type: number, stream: QueuedStream, payload: Uint8Array): void;
  sendAbort(stream: QueuedStream, code: string): void;
  /** Adds to the count of queued bytes. False: the queues of the link are full. */
  countQueued(bytes: number): boolean;
  ended(stream: QueuedStream): void;
  /** Runs a handler of a stream. If the handler throws, aborts the stream. */
  guard(stream: QueuedStream, callback: () => void): void;
}

export interface StreamBounds {
  readonly maxStreamQueueBytes: number;
  readonly highWaterBytes: number;
  readonly maxMessageBytes: number;
}

interface Queued {
  readonly bytes: Uint8Array;
  readonly isText: boolean;
}

const NOTHING = new Uint8Array(0);

export class QueuedStream implements LinkStream {
  readonly id: number;
  readonly kind: string;
  readonly isOpenedBySelf: boolean;
  readonly #host: StreamHost;
  readonly #bounds: StreamBounds;
  #handlers: StreamHandlers;
  #state: 'open' | 'closing' | 'ended' = 'open';
  #queue: Queued[] = [];
  #queuedBytes = 0;
  /** Bytes already sent of the first queued message. */
  #sentOfFirst = 0;
  /** Whether `send` has returned false, so that `onDrain` must follow. */
  #isDrainDue = false;
  /** Whether the stream is in the table's round of waiting streams. */
  isInRound = false;
  #fragments: Uint8Array[] = [];
  #fragmentBytes = 0;

  constructor(host: StreamHost, id: number, kind: string, isOpenedBySelf: boolean, bounds: StreamBounds, handlers: StreamHandlers) {
    this.#host = host;
    this.id = id;
    this.kind = kind;
    this.isOpenedBySelf = isOpenedBySelf;
    this.#bounds = bounds;
    this.#handlers = handlers;
  }

  get peer(): string {
    return this.#host.peer;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Set by the handler of an incoming stream, before any message. */
  set handlers(handlers: StreamHandlers) {
    this.#handlers = handlers;
  }

  send(bytes: Uint8Array, isText: boolean): boolean {
    if (this.#state !== 'open') return false;
    if (bytes.length > this.#bounds.maxMessageBytes) {
      this.abort('too_large');
      return false;
    }
    if (this.#queue.length === 0 && bytes.length <= this.#host.outbox.fragmentBytes && this.#host.canSendDirectly(bytes.length)) {
      this.#host.outbox.addData(frameHead(FrameType.data, this.isOpenedBySelf, isText), this.id, bytes);
      this.#host.scheduleFlush();
      return true;
    }
    this.#queue.push({ bytes, isText });
    this.#queuedBytes += bytes.length;
    if (!this.#host.countQueued(bytes.length) || this.#queuedBytes > this.#bounds.maxStreamQueueBytes) {
      this.abort('queue_full');
      return false;
    }
    this.#host.enqueue(this);
    if (this.#queuedBytes <= this.#bounds.highWaterBytes) return true;
    this.#isDrainDue = true;
    return false;
  }

  sendControl(bytes: Uint8Array): void {
    if (this.#state === 'open') this.#host.sendStreamControl(FrameType.control, this, bytes);
  }

  close(): void {
    if (this.#state !== 'open') return;
    this.#state = 'closing';
    if (this.#queue.length === 0) this.#finish();
  }

  abort(code: string): void {
    if (this.#state === 'ended') return;
    this.#host.sendAbort(this, code);
    this.end({ kind: 'aborted', code, byPeer: false });
  }

  /** Sends queued messages, up to about `quantum` bytes, while the window has room. */
  pull(quantum: number): void {
    const { outbox } = this.#host;
    let left = quantum;
    let count = 0;
    let first = this.#queue[count];
    while (first !== undefined && left > 0) {
      const bytes = Math.min(outbox.fragmentBytes, first.bytes.length - this.#sentOfFirst);
      if (!outbox.hasRoomFor(bytes)) break;
      const end = this.#sentOfFirst + bytes;
      const isLast = end === first.bytes.length;
      outbox.addData(
        frameHead(FrameType.data, this.isOpenedBySelf, first.isText, !isLast),
        this.id,
        isLast && this.#sentOfFirst === 0 ? first.bytes : first.bytes.subarray(this.#sentOfFirst, end),
      );
      this.#sentOfFirst = isLast ? 0 : end;
      this.#unqueue(bytes);
      left -= Math.max(1, bytes);
      if (isLast) first = this.#queue[++count];
    }
    if (count > 0) this.#queue.splice(0, count);
    if (this.#queue.length === 0 && this.#state === 'closing') this.#finish();
  }

  get hasQueued(): boolean {
    return this.#queue.length > 0;
  }

  get nextBytes(): number {
    const first = this.#queue[0];
    return first === undefined ? 0 : Math.min(this.#host.outbox.fragmentBytes, first.bytes.length - this.#sentOfFirst);
  }

  /** Calls `onDrain` if it is due and the queue has fallen to half of the high-water mark. */
  drained(): void {
    if (!this.#isDrainDue || this.#state !== 'open' || this.#queuedBytes > this.#bounds.highWaterBytes >> 1) return;
    this.#isDrainDue = false;
    this.#host.guard(this, () => this.#handlers.onDrain?.());
  }

  /** Receives a message or a fragment. `takeReassembly` counts bytes of incomplete messages, and is false above the link's maximum. */
  received(bytes: Uint8Array, isText: boolean, hasMore: boolean, takeReassembly: (bytes: number) => boolean): void {
    if (this.#state !== 'open') return;
    if (!hasMore && this.#fragments.length === 0) {
      this.#host.guard(this, () => this.#handlers.onMessage(bytes, isText));
      return;
    }
    this.#fragmentBytes += bytes.length;
    if (this.#fragmentBytes > this.#bounds.maxMessageBytes || !takeReassembly(bytes.length)) {
      this.abort('too_large');
      return;
    }
    this.#fragments.push(bytes);
    if (hasMore) return;
    const message = Buffer.concat(this.#fragments);
    this.#fragments = [];
    takeReassembly(-this.#fragmentBytes);
    this.#fragmentBytes = 0;
    this.#host.guard(this, () => this.#handlers.onMessage(message, isText));
  }

  receivedControl(bytes: Uint8Array): void {
    if (this.#state === 'open') this.#host.guard(this, () => this.#handlers.onControl?.(bytes));
  }

  get fragmentBytes(): number {
    return this.#fragmentBytes;
  }

  end(end: StreamEnd): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#unqueue(this.#queuedBytes);
    this.#queue = [];
    this.#fragments = [];
    this.#host.ended(this);
    this.#fragmentBytes = 0;
    this.#host.guard(this, () => this.#handlers.onClosed(end));
  }

  #finish(): void {
    this.#host.outbox.addData(frameHead(FrameType.close, this.isOpenedBySelf), this.id, NOTHING);
    this.#host.scheduleFlush();
    this.end({ kind: 'closed' });
  }

  #unqueue(bytes: number): void {
    this.#queuedBytes -= bytes;
    this.#host.countQueued(-bytes);
  }
}
