/** Types of `PeerLink`: its options, limits, handlers, log events and counts. */
import type { Clock } from '../transport/clock.js';
import type { ClusterTransport } from '../transport/cluster-transport.js';
import type { LinkStream, StreamHandlers } from './link-stream.js';
import type { RequestHandler } from './requests.js';

export interface LinkLimits {
  readonly maxIncomingStreams: number;
  readonly maxIncomingRequests: number;
  readonly maxOutgoingRequests: number;
  /** Maximum bytes of control frames that the peer has not acknowledged. */
  readonly maxControlBytes: number;
  readonly maxMessageBytes: number;
  /** Maximum queue of one stream. A stream that exceeds it is aborted. */
  readonly maxStreamQueueBytes: number;
  /** Queue length of one stream above which `send` returns false. */
  readonly highWaterBytes: number;
  /** Maximum queues of all streams together. The stream that exceeds it is aborted. */
  readonly maxQueuedBytes: number;
  /** Maximum bytes of incomplete messages of the peer. */
  readonly maxReassemblyBytes: number;
}

export const DEFAULT_LINK_LIMITS: LinkLimits = {
  maxIncomingStreams: 20_000,
  maxIncomingRequests: 2_000,
  maxOutgoingRequests: 10_000,
  maxControlBytes: 8 * 1024 * 1024,
  maxMessageBytes: 9 * 1024 * 1024,
  maxStreamQueueBytes: 16 * 1024 * 1024,
  highWaterBytes: 512 * 1024,
  maxQueuedBytes: 64 * 1024 * 1024,
  maxReassemblyBytes: 32 * 1024 * 1024,
};

/** Event for the log, without payloads. Events with a `count` are logged only when the count is a power of ten. */
export interface LinkEvent {
  readonly event: 'up' | 'lost' | 'malformed' | 'unsupported_version' | 'handler_failed';
  readonly peer: string;
  readonly reason?: string;
  readonly count?: number;
}

/** Accepts a stream that a peer opened, and returns the handlers of its messages. */
export type IncomingStreamHandler = (stream: LinkStream, header: Uint8Array) => StreamHandlers;

/** Handlers by kind of request or stream. */
export interface LinkHandlers {
  readonly requests: ReadonlyMap<string, RequestHandler>;
  readonly streams: ReadonlyMap<string, IncomingStreamHandler>;
}

export interface PeerLinkOptions {
  readonly peer: string;
  readonly transport: ClusterTransport;
  readonly outgoingSubject: string;
  readonly incomingSubject: string;
  readonly clock: Clock;
  /** Random integer of 1 to 2^48 − 1. */
  readonly randomEpoch: () => number;
  readonly windowBytes: number;
  readonly handlers: LinkHandlers;
  readonly limits?: Partial<LinkLimits>;
  readonly log: (event: LinkEvent) => void;
}

/** Envelopes by outcome, and losses of the link, since its creation. */
export interface LinkCounts {
  sent: number;
  received: number;
  /** Envelopes that could not be decoded, and violations of the protocol. */
  malformed: number;
  unsupported: number;
  /** Envelopes from or to an earlier epoch. */
  stale: number;
  duplicates: number;
  gaps: number;
  /** Retransmissions of earlier conversations. The outbox counts those of the current one. */
  retransmitted: number;
  losses: number;
}
