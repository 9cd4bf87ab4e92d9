/** Types of a link to one other coordinator: options, bounds, handlers, log events and counts. */
import type { Clock } from '../transport/clock.js';
import type { ClusterTransport } from '../transport/cluster-transport.js';
import type { LinkStream, StreamHandlers } from './link-stream.js';
import type { RequestHandler } from './requests.js';

export interface LinkLimits {
  readonly maxIncomingStreams: number;
  readonly maxIncomingRequests: number;
  readonly maxOutgoingRequests: number;
  /** Unacknowledged control frames. */
  readonly maxControlBytes: number;
  readonly maxMessageBytes: number;
  readonly maxStreamQueueBytes: number;
  /** Queued bytes of a stream above which `send` returns false. */
  readonly highWaterBytes: number;
  /** Queued bytes of all streams. */
  readonly maxQueuedBytes: number;
  /** Fragments of incomplete messages of the peer. */
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

/** A report for the log. Refused envelopes are reported at each power of ten. Never contains payloads. */
export interface LinkEvent {
  readonly event: 'up' | 'lost' | 'malformed' | 'unsupported_version' | 'handler_failed';
  readonly peer: string;
  readonly reason?: string;
  readonly count?: number;
}

/** Accepts a stream of a peer by returning its handlers. */
export type IncomingStreamHandler = (stream: LinkStream, header: Uint8Array) => StreamHandlers;

/** Handlers by kind of request or stream. */
export interface LinkHandlers {
  readonly requests: ReadonlyMap<string, RequestHandler>;
  readonly streams: ReadonlyMap<string, IncomingStreamHandler>;
}

export interface PeerLinkOptions {
  readonly peer: string;
  readonly transport: ClusterTransport;
  /** Subject on which the peer receives envelopes of this coordinator. */
  readonly outgoingSubject: string;
  /** Subject on which this coordinator receives envelopes of the peer. */
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
  /** Unreadable or forbidden envelopes. */
  malformed: number;
  /** Envelopes of a version that this coordinator does not read. */
  unsupported: number;
  /** Envelopes from or to another incarnation. */
  stale: number;
  duplicates: number;
  gaps: number;
  /** Retransmissions of earlier conversations. The outbox counts those of the current one. */
  retransmitted: number;
  losses: number;
}
