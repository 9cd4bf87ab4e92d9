/**
 * `RemoteSlot`: slot of a provider connected to a peer, and the job in the slot.
 *
 * The peer is the owning coordinator. Each slot has a stream to that peer, whose end frees the slot.
 */
import { decodeFrame, FrameError, type JobMessage, type RequestFrames } from '@inference/protocol';
import type { JobHandle, JobSink, ProviderSlot } from '../../providers/provider-connection.js';
import { encodeMessage } from '../json-message.js';
import type { PeerStream, StreamEvents } from '../peer.js';
import { type AskerMessage, parseOwnerMessage } from './placement-messages.js';
import type { RemoteProvider } from './remote-provider.js';

export class RemoteSlot implements ProviderSlot, StreamEvents {
  readonly provider: RemoteProvider;
  readonly #stream: PeerStream;
  #sink: JobSink | null = null;
  #isUsed = false;
  #isOver = false;
  /** Sealed frames of the request that wait until the link has room. */
  #unsent: RequestFrames | null = null;
  /** Whether the job's first message has left the owning coordinator's send queue, as far as reported. */
  #isSent = false;

  constructor(provider: RemoteProvider, stream: PeerStream) {
    this.provider = provider;
    this.#stream = stream;
  }

  start(job: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle {
    if (this.#isUsed) throw new Error('a slot serves one job');
    this.#isUsed = true;
    this.#sink = sink;
    // The stream may have ended between placement and start. Deferred, so that the caller has the handle when `lost` is called.
    if (this.#isOver) queueMicrotask(() => sink.lost());
    else {
      this.#unsent = frames;
      this.#send({ type: 'start', job, frames: frames.count });
      this.#sendFrames();
    }
    return {
      isSent: () => this.#isSent,
      grant: (bytes) => this.#control({ type: 'credit', bytes }),
      recall: () => this.#control({ type: 'recall' }),
      cancel: () => this.#cancel(),
    };
  }

  release(): void {
    if (this.#isUsed) return;
    this.#isUsed = true;
    this.#end();
  }

  message(bytes: Uint8Array, isText: boolean): void {
    const sink = this.#sink;
    if (sink === null || this.#isOver) return;
    if (!isText) {
      this.#receiveFrame(bytes, sink);
      return;
    }
    const message = parseOwnerMessage(bytes);
    switch (message?.type) {
      case 'sending':
        this.#isSent = message.sent;
        sink.sending();
        return;
      case 'accepted':
        this.#isSent = true;
        sink.accepted();
        return;
      case 'progressed':
        sink.progressed();
        return;
      case 'completed':
        this.#end();
        sink.completed(message.message);
        return;
      case 'failed':
        this.#end();
        sink.failed(message.failure);
        return;
      case 'lost':
        this.#end();
        sink.lost();
        return;
      default:
        this.#break();
    }
  }

  control(): void {
    this.#break();
  }

  drained(): void {
    this.#sendFrames();
  }

  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sink?.lost();
  }

  #receiveFrame(bytes: Uint8Array, sink: JobSink): void {
    try {
      sink.frame(decodeFrame(bytes));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#break();
    }
  }

  /** Handles a violation of the protocol by the owning coordinator. */
  #break(): void {
    this.#isOver = true;
    this.#stream.abort('bad_message');
    this.#sink?.lost();
  }

  #sendFrames(): void {
    while (!this.#isOver) {
      const frame = this.#unsent?.take() ?? null;
      if (frame === null || !this.#stream.send(frame, false)) return;
    }
  }

  #cancel(): void {
    if (this.#isOver) return;
    this.#sink = null;
    this.#control({ type: 'cancel' });
    this.#end();
  }

  #control(message: AskerMessage): void {
    if (!this.#isOver) this.#stream.sendControl(encodeMessage(message));
  }

  #send(message: AskerMessage): void {
    if (!this.#isOver) this.#stream.send(encodeMessage(message), true);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsent = null;
    this.#stream.close();
  }
}
