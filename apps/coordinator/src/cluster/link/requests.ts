/** `Requests`: requests of a link conversation, in both directions. Each request and each reply is one control frame. */
import type { Clock } from '../transport/clock.js';
import {
  decodeCode,
  decodeKind,
  encodeCode,
  encodeKind,
  type Frame,
  FrameType,
  MAX_CONTROL_PAYLOAD_BYTES,
  MAX_KIND_BYTES,
} from './frame.js';
import { LinkError, type LinkErrorCode } from './link-error.js';

export interface RequestContext {
  readonly peer: string;
  /** Aborted when the peer cancels, or the link is lost. */
  readonly signal: AbortSignal;
}

/** Answers a request of a peer. If it throws, the peer gets the code of a LinkError, or `failed`. */
export type RequestHandler = (payload: Uint8Array, context: RequestContext) => Uint8Array | Promise<Uint8Array>;

export interface RequestOptions {
  /** Timeout. If this process stalls during the wait, the timeout is extended by the stall, at most to double. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

interface Pending {
  settle(error: LinkError | null, reply: Uint8Array): void;
}

export interface RequestsOptions {
  readonly peer: string;
  readonly clock: Clock;
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  readonly maxIncoming: number;
  readonly maxOutgoing: number;
  /** False if the control lane is full. */
  readonly send: (type: number, id: number, payload: Uint8Array, mayUseHeadroom: boolean) => boolean;
  readonly onHandlerFailed: (kind: string, error: unknown) => void;
}

const NOTHING = new Uint8Array(0);
const MAX_ID = 2 ** 32 - 1;
/** Delay of a timer from which on this process is considered to have stalled. */
const MIN_STALL_MS = 20;
/** Error codes that a peer may send. Any other code becomes `failed`. */
const PEER_CODES: ReadonlySet<string> = new Set([
  'overloaded',
  'too_large',
  'unknown_kind',
  'aborted',
  'timeout',
] satisfies LinkErrorCode[]);

export class Requests {
  readonly #options: RequestsOptions;
  readonly #outgoing = new Map<number, Pending>();
  readonly #incoming = new Map<number, AbortController>();
  #nextId = 1;

  constructor(options: RequestsOptions) {
    this.#options = options;
  }

  get incomingCount(): number {
    return this.#incoming.size;
  }

  request(kind: string, payload: Uint8Array, { timeoutMs, signal }: RequestOptions): Promise<Uint8Array> {
    const { clock, maxOutgoing, peer, send } = this.#options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(new LinkError('aborted', 'the request was aborted'));
      if (payload.length > MAX_CONTROL_PAYLOAD_BYTES - MAX_KIND_BYTES - 1) return reject(new LinkError('too_large', `request ${kind}`));
      if (this.#outgoing.size >= maxOutgoing) return reject(new LinkError('overloaded', `too many requests to ${peer}`));
      const id = this.#takeId();
      if (!send(FrameType.request, id, encodeKind(kind, payload), false)) return reject(new LinkError('overloaded', `queue to ${peer}`));
      const cancel = (code: LinkErrorCode): void => {
        send(FrameType.cancel, id, NOTHING, true);
        pending.settle(new LinkError(code, `request ${kind} to ${peer}: ${code}`), NOTHING);
      };
      const dueAt = clock.now() + timeoutMs;
      let cancelTimer = clock.setTimer(timeoutMs, () => {
        // After a stall of the event loop, timers run before replies that have already arrived. So the wait is extended once.
        const stallMs = Math.min(clock.now() - dueAt, timeoutMs);
        if (stallMs < MIN_STALL_MS) cancel('timeout');
        else cancelTimer = clock.setTimer(stallMs, () => cancel('timeout'));
      });
      const onAbort = (): void => cancel('aborted');
      signal?.addEventListener('abort', onAbort, { once: true });
      const pending: Pending = {
        settle: (error, reply) => {
          this.#outgoing.delete(id);
          cancelTimer();
          signal?.removeEventListener('abort', onAbort);
          if (error === null) resolve(reply);
          else reject(error);
        },
      };
      this.#outgoing.set(id, pending);
    });
  }

  /** Handles a frame. False: the frame violates the protocol. */
  received({ type, id, payload }: Frame): boolean {
    switch (type) {
      case FrameType.request:
        return this.#requested(id, payload);
      case FrameType.cancel:
        this.#incoming.get(id)?.abort(new LinkError('aborted', 'the peer cancelled the request'));
        return true;
      // A reply after the timeout finds no pending request.
      case FrameType.reply:
        this.#outgoing.get(id)?.settle(null, payload);
        return true;
      default: {
        const code = decodeCode(payload);
        const error = new LinkError(PEER_CODES.has(code) ? (code as LinkErrorCode) : 'failed', `request to ${this.#options.peer}: ${code}`);
        this.#outgoing.get(id)?.settle(error, NOTHING);
        return true;
      }
    }
  }

  /** Ends all requests of both directions, because the link is lost. */
  end(error: LinkError): void {
    for (const controller of this.#incoming.values()) controller.abort(error);
    this.#incoming.clear();
    for (const pending of [...this.#outgoing.values()]) pending.settle(error, NOTHING);
  }

  #requested(id: number, payload: Buffer): boolean {
    const decoded = decodeKind(payload);
    if (decoded === null || this.#incoming.has(id)) return false;
    const handler = this.#options.handlers.get(decoded.kind);
    if (handler === undefined) return this.#reply(FrameType.replyError, id, encodeCode('unknown_kind'), true);
    if (this.#incoming.size >= this.#options.maxIncoming) return this.#reply(FrameType.replyError, id, encodeCode('overloaded'), true);
    const controller = new AbortController();
    this.#incoming.set(id, controller);
    void this.#answer(id, decoded.kind, controller, async () =>
      handler(decoded.bytes, { peer: this.#options.peer, signal: controller.signal }),
    );
    return true;
  }

  async #answer(id: number, kind: string, controller: AbortController, handle: () => Promise<Uint8Array>): Promise<void> {
    let reply: Uint8Array = NOTHING;
    let code: string | null = null;
    try {
      reply = await handle();
      if (reply.length > MAX_CONTROL_PAYLOAD_BYTES) code = 'too_large';
    } catch (error) {
      code = error instanceof LinkError ? error.code : 'failed';
      if (code === 'failed' && !controller.signal.aborted) this.#options.onHandlerFailed(kind, error);
    }
    // The link was lost meanwhile. A new request may already have the same number.
    if (this.#incoming.get(id) !== controller) return;
    this.#incoming.delete(id);
    if (controller.signal.aborted) return;
    if (code === null && this.#reply(FrameType.reply, id, reply, false)) return;
    this.#reply(FrameType.replyError, id, encodeCode(code ?? 'overloaded'), true);
  }

  #reply(type: number, id: number, payload: Uint8Array, mayUseHeadroom: boolean): boolean {
    return this.#options.send(type, id, payload, mayUseHeadroom);
  }

  #takeId(): number {
    const id = this.#nextId;
    this.#nextId = id === MAX_ID ? 1 : id + 1;
    return this.#outgoing.has(id) ? this.#takeId() : id;
  }
}
