/**
 * `Conversation`: all streams and requests of a `PeerLink` between two losses of the link.
 *
 * A conversation is identified by one epoch (random number) of each side.
 */
import { DATA_LANE, type LaneNumber } from './envelope.js';
import { type Frame, FrameType, MAX_CONTROL_PAYLOAD_BYTES } from './frame.js';
import { LinkError, type LossReason } from './link-error.js';
import type { LinkHandlers, LinkLimits } from './link-options.js';
import { ReliableTransfer, type ReliableTransferOptions } from './reliable-transfer.js';
import { Requests } from './requests.js';
import { StreamTable } from './stream-table.js';

export interface ConversationOptions extends Omit<ReliableTransferOptions, 'deliver' | 'onCapacity' | 'maxControlBytes'> {
  readonly peer: string;
  readonly handlers: LinkHandlers;
  readonly limits: LinkLimits;
  readonly onHandlerFailed: (kind: string, error: unknown) => void;
  /** Called at the end of the event loop's turn if the control lane is so full that not even a stream's abort fits. */
  readonly onOverloaded: () => void;
}

export class Conversation {
  readonly transfer: ReliableTransfer;
  readonly streams: StreamTable;
  readonly requests: Requests;
  readonly #peer: string;

  constructor(options: ConversationOptions) {
    const { peer, clock, handlers, limits, onHandlerFailed, onOverloaded } = options;
    this.#peer = peer;
    const transfer = new ReliableTransfer({
      ...options,
      maxControlBytes: limits.maxControlBytes,
      deliver: (frame, lane) => this.#deliver(frame, lane),
      onCapacity: () => this.streams.pump(),
    });
    this.transfer = transfer;
    this.streams = new StreamTable({
      peer,
      transfer,
      limits,
      handlers: handlers.streams,
      onHandlerFailed,
      // Deferred, because the caller may be in the middle of a loop over streams.
      onOverloaded: () =>
        clock.defer(() => {
          if (!transfer.isEnded) onOverloaded();
        }),
    });
    this.requests = new Requests({
      peer,
      clock,
      handlers: handlers.requests,
      maxIncoming: limits.maxIncomingRequests,
      maxOutgoing: limits.maxOutgoingRequests,
      send: (type, id, payload, mayUseHeadroom) => transfer.sendControl(type, true, id, payload, mayUseHeadroom),
      onHandlerFailed,
    });
  }

  /** Bytes in memory for the peer: gathered and unacknowledged frames, queued messages, and incomplete messages. */
  get retainedBytes(): number {
    return this.transfer.outbox.retainedBytes + this.streams.retainedBytes;
  }

  set windowBytes(bytes: number) {
    this.transfer.outbox.windowBytes = bytes;
    this.streams.pump();
  }

  /** Ends all streams and requests. Messages that the handlers send afterwards are dropped. */
  end(reason: LossReason): void {
    this.transfer.end();
    this.streams.end({ kind: 'link_lost', reason });
    this.requests.end(new LinkError('link_lost', `the link to ${this.#peer} is lost: ${reason}`));
  }

  /** Passes a frame to its stream or request. False: the frame violates the protocol. */
  #deliver(frame: Frame, lane: LaneNumber): boolean {
    const isData = frame.type === FrameType.data || frame.type === FrameType.close;
    if (isData !== (lane === DATA_LANE)) return false;
    if (!isData && frame.payload.length > MAX_CONTROL_PAYLOAD_BYTES) return false;
    switch (frame.type) {
      case FrameType.request:
      case FrameType.reply:
      case FrameType.replyError:
      case FrameType.cancel:
        return this.requests.received(frame);
      default:
        return this.streams.received(frame);
    }
  }
}
