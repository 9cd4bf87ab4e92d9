/** `StreamTable`: open streams of a link conversation. Assigns stream numbers, and lets the streams share the send window round-robin. */
import { decodeCode, decodeKind, encodeCode, encodeKind, type Frame, FrameType, MAX_CONTROL_PAYLOAD_BYTES } from './frame.js';
import { LinkError } from './link-error.js';
import type { IncomingStreamHandler, LinkLimits } from './link-options.js';
import { type LinkStream, QueuedStream, type StreamEnd, type StreamHandlers, type StreamHost } from './link-stream.js';
import type { Outbox } from './outbox.js';

/** Bytes, about, that a stream sends before the next waiting stream has its turn. */
const QUANTUM_BYTES = 64 * 1024;
const MAX_STREAM_ID = 2 ** 32 - 1;
/** Handlers of an incoming stream until its own handlers are set. */
const NO_HANDLERS: StreamHandlers = { onMessage: () => {}, onClosed: () => {} };

interface StreamTransfer {
  readonly outbox: Outbox;
  scheduleFlush(): void;
  sendControl(type: number, isOpenedBySelf: boolean, id: number, payload: Uint8Array, mayUseHeadroom: boolean): boolean;
}

export interface StreamTableOptions {
  readonly peer: string;
  readonly transfer: StreamTransfer;
  readonly limits: LinkLimits;
  readonly handlers: ReadonlyMap<string, IncomingStreamHandler>;
  readonly onHandlerFailed: (kind: string, error: unknown) => void;
  /** Called if the control lane is so full that not even an abort fits, because the peer acknowledges nothing. */
  readonly onOverloaded: () => void;
}

export class StreamTable implements StreamHost {
  readonly peer: string;
  readonly #options: StreamTableOptions;
  readonly #streams = new Map<number, QueuedStream>();
  #incomingCount = 0;
  #nextId = 1;
  #lastPeerId = 0;
  /** Streams with queued messages, in round-robin order. */
  readonly #round: QueuedStream[] = [];
  #queuedBytes = 0;
  #reassemblyBytes = 0;

  constructor(options: StreamTableOptions) {
    this.#options = options;
    this.peer = options.peer;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Bytes in memory: queued messages, and fragments of incomplete messages. */
  get retainedBytes(): number {
    return this.#queuedBytes + this.#reassemblyBytes;
  }

  /** Opens a stream. Throws a LinkError if the header is too large or the link is overloaded. */
  open(kind: string, header: Uint8Array, handlers: StreamHandlers): LinkStream {
    const payload = encodeKind(kind, header);
    if (payload.length > MAX_CONTROL_PAYLOAD_BYTES) throw new LinkError('too_large', `header of a ${kind} stream`);
    if (this.#nextId > MAX_STREAM_ID) throw new LinkError('overloaded', 'stream numbers are used up');
    const id = this.#nextId;
    if (!this.#options.transfer.sendControl(FrameType.open, true, id, payload, false)) {
      throw new LinkError('overloaded', `control queue to ${this.peer}`);
    }
    this.#nextId++;
    const stream = new QueuedStream(this, id, kind, true, this.#options.limits, handlers);
    this.#streams.set(streamKey(id, true), stream);
    return stream;
  }

  /** Handles a frame of a stream. False: the frame violates the protocol. */
  received(frame: Frame): boolean {
    if (frame.type === FrameType.open) return this.#opened(frame);
    const isOpenedBySelf = !frame.isOpenedBySender;
    const stream = this.#streams.get(streamKey(frame.id, isOpenedBySelf));
    // Frames may still arrive for a stream that has ended on this side.
    if (stream === undefined) return frame.id !== 0 && frame.id <= (isOpenedBySelf ? this.#nextId - 1 : this.#lastPeerId);
    switch (frame.type) {
      case FrameType.data:
        stream.received(frame.payload, frame.isText, frame.hasMore, (bytes) => {
          this.#reassemblyBytes += bytes;
          return this.#reassemblyBytes <= this.#options.limits.maxReassemblyBytes;
        });
        return true;
      case FrameType.close:
        stream.end({ kind: 'closed' });
        return true;
      case FrameType.abort:
        stream.end({ kind: 'aborted', code: decodeCode(frame.payload), byPeer: true });
        return true;
      case FrameType.control:
        stream.receivedControl(frame.payload);
        return true;
      default:
        return false;
    }
  }

  #opened({ id, payload, isOpenedBySender }: Frame): boolean {
    const decoded = decodeKind(payload);
    if (decoded === null || !isOpenedBySender || id <= this.#lastPeerId) return false;
    this.#lastPeerId = id;
    const { handlers, limits } = this.#options;
    const handler = handlers.get(decoded.kind);
    if (handler === undefined || this.#incomingCount >= limits.maxIncomingStreams) {
      this.#abort(id, false, handler === undefined ? 'unknown_kind' : 'overloaded');
      return true;
    }
    const stream = new QueuedStream(this, id, decoded.kind, false, limits, NO_HANDLERS);
    this.#streams.set(streamKey(id, false), stream);
    this.#incomingCount++;
    this.guard(stream, () => {
      stream.handlers = handler(stream, decoded.bytes);
    });
    return true;
  }

  /** Lets waiting streams send round-robin, while the window (maximum unacknowledged bytes) has room. */
  pump(): void {
    const { outbox } = this;
    const drained: QueuedStream[] = [];
    let stream = this.#round[0];
    while (stream !== undefined && (!stream.hasQueued || outbox.hasRoomFor(stream.nextBytes))) {
      this.#round.shift();
      stream.pull(QUANTUM_BYTES);
      if (stream.hasQueued) this.#round.push(stream);
      else stream.isInRound = false;
      drained.push(stream);
      stream = this.#round[0];
    }
    if (drained.length === 0) return;
    this.scheduleFlush();
    for (const pulled of drained) pulled.drained();
  }

  end(end: StreamEnd): void {
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    this.#round.length = 0;
    for (const stream of streams) stream.end(end);
  }

  // Implementation of StreamHost

  get outbox(): Outbox {
    return this.#options.transfer.outbox;
  }

  canSendDirectly(bytes: number): boolean {
    return this.#round.length === 0 && this.outbox.hasRoomFor(bytes);
  }

  enqueue(stream: QueuedStream): void {
    if (!stream.isInRound) {
      stream.isInRound = true;
      this.#round.push(stream);
    }
    this.pump();
  }

  scheduleFlush(): void {
    this.#options.transfer.scheduleFlush();
  }

  sendStreamControl(type: number, stream: QueuedStream, payload: Uint8Array): void {
    if (payload.length > MAX_CONTROL_PAYLOAD_BYTES) {
      stream.abort('too_large');
      return;
    }
    if (!this.#options.transfer.sendControl(type, stream.isOpenedBySelf, stream.id, payload, false)) stream.abort('queue_full');
  }

  sendAbort(stream: QueuedStream, code: string): void {
    this.#abort(stream.id, stream.isOpenedBySelf, code);
  }

  countQueued(bytes: number): boolean {
    this.#queuedBytes += bytes;
    return this.#queuedBytes <= this.#options.limits.maxQueuedBytes;
  }

  ended(stream: QueuedStream): void {
    this.#reassemblyBytes -= stream.fragmentBytes;
    if (!this.#streams.delete(streamKey(stream.id, stream.isOpenedBySelf))) return;
    if (!stream.isOpenedBySelf) this.#incomingCount--;
  }

  guard(stream: QueuedStream, callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#options.onHandlerFailed(stream.kind, error);
      stream.abort('failed');
    }
  }

  #abort(id: number, isOpenedBySelf: boolean, code: string): void {
    const { transfer, onOverloaded } = this.#options;
    if (!transfer.sendControl(FrameType.abort, isOpenedBySelf, id, encodeCode(code), true)) onOverloaded();
  }
}

/** Key of a stream: opener and number. Both sides count from 1, so the number alone is ambiguous. */
function streamKey(id: number, isOpenedBySelf: boolean): number {
  return id * 2 + (isOpenedBySelf ? 1 : 0);
}
