/**
 * Link to one other coordinator: requests and streams over a transport that loses messages when it reconnects.
 *
 * Each side names its incarnation by a random epoch. Envelopes carry both epochs, so that nothing of an earlier incarnation is taken
 * for the present one. A lost link starts again by itself, with a new epoch and without its streams.
 */
import type { Clock } from '../transport/clock.js';
import type { ClusterTransport } from '../transport/cluster-transport.js';
import {
  CONTROL_LANE,
  DATA_LANE,
  ENVELOPE_HEADER_BYTES,
  type EnvelopeHeader,
  Flag,
  LANE_MASK,
  type LaneNumber,
  NO_LANE,
  readHeader,
  VERSION,
  writeAfterControl,
  writeHeader,
} from './envelope.js';
import { Epochs } from './epochs.js';
import {
  decodeCode,
  decodeKind,
  eachFrame,
  encodeCode,
  encodeKind,
  type Frame,
  FrameType,
  frameHead,
  hasWholeFrames,
  MAX_CONTROL_PAYLOAD_BYTES,
} from './frame.js';
import { ReceiveLane, type SendLane } from './lanes.js';
import { LinkError, type LossReason } from './link-error.js';
import { type LinkStream, QueuedStream, type StreamHandlers, type StreamOwner } from './link-stream.js';
import { Outbox } from './outbox.js';
import { type RequestHandler, type RequestOptions, Requests } from './requests.js';

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

/** A report for the log. Repeated ones are reported at each power of ten. Never contains payloads. */
export interface LinkEvent {
  readonly event: 'up' | 'lost' | 'malformed' | 'handler_failed';
  readonly peer: string;
  readonly reason?: string;
  readonly count?: number;
}

export interface LinkHandlers {
  readonly requests: Map<string, RequestHandler>;
  readonly streams: Map<string, IncomingStreamHandler>;
}

/** Accepts a stream of a peer by returning its handlers. */
export type IncomingStreamHandler = (stream: LinkStream, header: Uint8Array) => StreamHandlers;

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

export type LinkState = 'connecting' | 'up' | 'lost' | 'closed';

const TICK_MS = 100;
const HEARTBEAT_MS = 1_000;
/** Silence after which a peer is lost while the transport is connected. */
const MAX_SILENCE_MS = 3_000;
/** The same if the server reported that the peer has no subscription. */
const MAX_SILENCE_WITHOUT_RESPONDERS_MS = 1_500;
const MAX_PAUSE_MS = 10_000;
const HELLO_MS = 250;
const LOST_HELLO_MS = 1_000;
const MIN_PROBE_MS = 250;
const MAX_PROBE_MS = 1_000;
const ACK_DELAY_MS = 10;
const GATHER_MS = 2;
const MIN_REWIND_MS = 10;
const REPEAT_GAP_MS = 100;
/** Answers to envelopes outside of a conversation. */
const MIN_REPLY_MS = 20;
/** Bulk data waits while the transport has more than this: control frames of all links pass through the same socket. */
const MAX_TRANSPORT_BACKLOG_BYTES = 2 * 1024 * 1024;
const MAX_ACK_BYTES = 1024 * 1024;
const MIN_ACK_BYTES = 16 * 1024;
/** Bytes that a stream may send before the next waiting stream has its turn. */
const QUANTUM_BYTES = 64 * 1024;
const MAX_STREAM_ID = 2 ** 32 - 1;
const IGNORE: StreamHandlers = { onMessage: () => {}, onClosed: () => {} };

export class PeerLink implements StreamOwner {
  readonly peer: string;
  readonly #options: PeerLinkOptions;
  readonly #limits: LinkLimits;
  readonly #epochs: Epochs;
  #state: LinkState = 'connecting';
  #header: Omit<EnvelopeHeader, 'afterControl'>;
  outbox: Outbox;
  #incomingControl = new ReceiveLane();
  #incomingData = new ReceiveLane();
  #requests: Requests;
  #windowBytes: number;

  readonly #streams = new Map<number, QueuedStream>();
  #incomingStreamCount = 0;
  #nextStreamId = 1;
  #lastPeerStreamId = 0;
  readonly #round: QueuedStream[] = [];
  #queuedBytes = 0;
  #reassemblyBytes = 0;

  #isFlushScheduled = false;
  #isAckScheduled = false;
  #gatheringSince = 0;
  #isAckDue = false;
  #replyFlags = 0;

  #tickedAt: number;
  #startedAt: number;
  #silentMs = 0;
  #pausedMs = 0;
  #sentAt = Number.NEGATIVE_INFINITY;
  #repliedAt = Number.NEGATIVE_INFINITY;
  #hasNoResponders = false;
  #probedAt = Number.NEGATIVE_INFINITY;
  #probeMs = MIN_PROBE_MS;
  #probedControl = 0;
  #probedData = 0;
  #rewoundAt = { control: Number.NEGATIVE_INFINITY, data: Number.NEGATIVE_INFINITY };
  readonly #cancellations: (() => void)[];
  #cancelTick: () => void = () => {};
  readonly #upListeners = new Set<() => void>();
  readonly #lostListeners = new Set<(reason: LossReason) => void>();

  /** Envelopes by what became of them. `malformed`: not readable, or forbidden. `stale`: of another incarnation. */
  readonly counts = { sent: 0, received: 0, malformed: 0, stale: 0, duplicates: 0, gaps: 0, retransmitted: 0, losses: 0 };

  constructor(options: PeerLinkOptions) {
    this.#options = options;
    this.peer = options.peer;
    this.#limits = { ...DEFAULT_LINK_LIMITS, ...options.limits };
    this.#windowBytes = options.windowBytes;
    this.#epochs = new Epochs(options.randomEpoch);
    this.#header = this.#newHeader();
    this.outbox = this.#newOutbox();
    this.#requests = this.#newRequests();
    this.#tickedAt = options.clock.now();
    this.#startedAt = this.#tickedAt;
    this.#cancellations = [
      options.transport.onState((isConnected) => this.#transportChanged(isConnected)),
      options.transport.onDrain(() => this.#flush()),
    ];
    this.#sendBare(Flag.probe);
    this.#scheduleTick();
  }

  get state(): LinkState {
    return this.#state;
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /** Bytes retained for the peer: unacknowledged, queued, and incomplete messages. */
  get retainedBytes(): number {
    return this.outbox.retainedBytes + this.#queuedBytes + this.#reassemblyBytes;
  }

  get windowBytes(): number {
    return this.#windowBytes;
  }

  set windowBytes(bytes: number) {
    this.#windowBytes = bytes;
    this.outbox.windowBytes = bytes;
    this.#pump();
  }

  onUp(listener: () => void): () => void {
    this.#upListeners.add(listener);
    return () => this.#upListeners.delete(listener);
  }

  /** Calls back after all streams and requests have ended. */
  onLost(listener: (reason: LossReason) => void): () => void {
    this.#lostListeners.add(listener);
    return () => this.#lostListeners.delete(listener);
  }

  /** Asks the peer; rejects with a LinkError. The peer handles a request at most once. */
  request(kind: string, payload: Uint8Array, options: RequestOptions): Promise<Uint8Array> {
    if (!this.#canOpen) return Promise.reject(this.#lostError());
    return this.#requests.request(kind, payload, options);
  }

  /** Opens a stream. `header` is sent with the opening, and must be short. Throws a LinkError if the link is lost or overloaded. */
  openStream(kind: string, header: Uint8Array, handlers: StreamHandlers): LinkStream {
    if (!this.#canOpen) throw this.#lostError();
    const payload = encodeKind(kind, header);
    if (payload.length > MAX_CONTROL_PAYLOAD_BYTES) throw new LinkError('too_large', `header of a ${kind} stream`);
    if (this.#nextStreamId > MAX_STREAM_ID) throw new LinkError('overloaded', 'stream numbers are used up');
    const id = this.#nextStreamId;
    if (!this.#sendControl(FrameType.open, true, id, payload, false)) throw new LinkError('overloaded', `control queue to ${this.peer}`);
    this.#nextStreamId++;
    const stream = new QueuedStream(this, id, kind, true, this.#limits, handlers);
    this.#streams.set(streamKey(id, true), stream);
    return stream;
  }

  /** Ends everything with `closed`, and tells the peer. */
  close(): void {
    if (this.#state === 'closed') return;
    if (this.#state === 'up') {
      this.#flush();
      this.#sendBare(Flag.goodbye);
    }
    this.#lose('closed');
    this.#state = 'closed';
    this.#cancelTick();
    for (const cancel of this.#cancellations) cancel();
  }

  /** The server reported that the peer does not subscribe to its subject. A hint: the peer may be changing its server. */
  noResponders(): void {
    this.#hasNoResponders = true;
  }

  /** An envelope from the peer's subject. Never throws. */
  receive(bytes: Uint8Array): void {
    if (this.#state === 'closed') return;
    const envelope = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const header = readHeader(envelope);
    if (header === null) {
      this.#malformed('envelope');
      return;
    }
    switch (this.#epochs.classify(header.epoch, header.peerEpoch)) {
      case 'current':
        this.#receiveCurrent(header, envelope);
        return;
      case 'new_peer':
        if (this.#epochs.peer !== 0) this.#lose('peer_restarted');
        this.#epochs.adopt(header.epoch);
        this.#receiveCurrent(header, envelope);
        return;
      case 'candidate':
      case 'unaware':
        this.#replyOutside(header.epoch, header.flags);
        return;
      case 'stale':
        this.counts.stale++;
        this.#replyOutside(0, header.flags);
        return;
    }
  }

  // Implementation of StreamOwner, for this link's streams.

  canSendDirectly(bytes: number): boolean {
    return this.#round.length === 0 && this.outbox.hasRoomFor(bytes);
  }

  enqueue(stream: QueuedStream): void {
    if (!stream.isInRound) {
      stream.isInRound = true;
      this.#round.push(stream);
    }
    this.#pump();
  }

  gathered(): void {
    if (this.#isFlushScheduled) {
      if (this.#options.clock.now() - this.#gatheringSince >= GATHER_MS) this.#flush();
      return;
    }
    this.#isFlushScheduled = true;
    this.#gatheringSince = this.#options.clock.now();
    this.#options.clock.defer(() => {
      this.#isFlushScheduled = false;
      this.#flush();
    });
  }

  sendStreamControl(type: number, stream: QueuedStream, payload: Uint8Array): void {
    if (payload.length > MAX_CONTROL_PAYLOAD_BYTES) {
      stream.abort('too_large');
      return;
    }
    if (!this.#sendControl(type, stream.isOpenedBySelf, stream.id, payload, false)) stream.abort('queue_full');
  }

  sendAbort(stream: QueuedStream, code: string): void {
    this.#refuse(stream.id, stream.isOpenedBySelf, code);
  }

  countQueued(bytes: number): boolean {
    this.#queuedBytes += bytes;
    return this.#queuedBytes <= this.#limits.maxQueuedBytes;
  }

  ended(stream: QueuedStream): void {
    this.#reassemblyBytes -= stream.fragmentBytes;
    const key = streamKey(stream.id, stream.isOpenedBySelf);
    if (this.#streams.get(key) !== stream) return;
    this.#streams.delete(key);
    if (!stream.isOpenedBySelf) this.#incomingStreamCount--;
  }

  guard(stream: QueuedStream, callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#handlerFailed(stream.kind, error);
      stream.abort('failed');
    }
  }

  // Receiving

  #receiveCurrent(header: EnvelopeHeader, envelope: Buffer): void {
    const now = this.#options.clock.now();
    this.counts.received++;
    this.#silentMs = 0;
    this.#hasNoResponders = false;
    this.#header.version = Math.min(VERSION, header.maxVersion);
    if ((header.flags & Flag.goodbye) !== 0) {
      this.#lose('peer_closed');
      return;
    }
    if (this.#state !== 'up') this.#up();
    const { control, data } = this.outbox;
    const hadUnacknowledged = control.acknowledged + data.acknowledged;
    if (!control.acknowledge(header.controlAck, now) || !data.acknowledge(header.dataAck, now)) {
      this.#violation('acknowledgement');
      return;
    }
    const hasProgressed = control.acknowledged + data.acknowledged !== hadUnacknowledged;
    if (hasProgressed) this.#probeMs = MIN_PROBE_MS;
    if ((header.flags & ~LANE_MASK) !== 0) this.#receiveFlags(header.flags, now);
    const epoch = this.#epochs.own;
    const lane = header.flags & LANE_MASK;
    if (lane !== NO_LANE) this.#receiveFrames(lane as LaneNumber, header, envelope, now);
    if (hasProgressed && this.#epochs.own === epoch && this.#state === 'up') this.#pump();
  }

  #receiveFlags(flags: number, now: number): void {
    const { control, data } = this.outbox;
    const isReply = (flags & Flag.probeReply) !== 0;
    const isControlLost = isReply && control.acknowledged < this.#probedControl;
    const isDataLost = isReply && data.acknowledged < this.#probedData;
    if (isReply) this.#probedControl = this.#probedData = 0;
    if (isControlLost || (flags & Flag.controlGap) !== 0) this.#rewind('control', control, now);
    if (isDataLost || (flags & Flag.dataGap) !== 0) this.#rewind('data', data, now);
    if ((flags & Flag.probe) !== 0) this.#answerLater(Flag.probeReply);
    if (control.hasUntransmitted || data.hasUntransmitted) this.gathered();
  }

  #rewind(name: 'control' | 'data', lane: SendLane, now: number): void {
    if (!lane.hasUnacknowledged || now - this.#rewoundAt[name] < MIN_REWIND_MS) return;
    this.#rewoundAt[name] = now;
    lane.rewind(now);
  }

  #receiveFrames(number: LaneNumber, header: EnvelopeHeader, envelope: Buffer, now: number): void {
    const lane = number === CONTROL_LANE ? this.#incomingControl : this.#incomingData;
    if (header.sequence <= lane.received) {
      this.counts.duplicates++;
      this.#acknowledgeLater(MAX_ACK_BYTES, lane);
      return;
    }
    const lacksControl = number === DATA_LANE && header.afterControl > this.#incomingControl.received;
    if (header.sequence !== lane.received + 1 || lacksControl) {
      this.counts.gaps++;
      let flags = 0;
      if (lacksControl && this.#incomingControl.shouldReportGap(now, REPEAT_GAP_MS)) flags |= Flag.controlGap;
      if (lane.shouldReportGap(now, REPEAT_GAP_MS)) flags |= number === CONTROL_LANE ? Flag.controlGap : Flag.dataGap;
      if (flags !== 0) this.#answerLater(flags);
      return;
    }
    if (!hasWholeFrames(envelope)) {
      this.#violation('frames');
      return;
    }
    lane.received = header.sequence;
    this.#acknowledgeLater(envelope.length, lane);
    const epoch = this.#epochs.own;
    const { peer } = this.#epochs;
    eachFrame(envelope, (frame) => {
      if (!this.#receiveFrame(frame, number)) {
        this.#violation(`frame ${frame.type}`);
        return false;
      }
      // A handler may have closed the link, or its loss may have ended this conversation.
      return this.#epochs.own === epoch && this.#epochs.peer === peer && this.#state === 'up';
    });
  }

  /** False for a frame that a correct peer does not send. */
  #receiveFrame(frame: Frame, lane: LaneNumber): boolean {
    const isData = frame.type === FrameType.data || frame.type === FrameType.close;
    if (isData !== (lane === DATA_LANE)) return false;
    if (!isData && frame.payload.length > MAX_CONTROL_PAYLOAD_BYTES) return false;
    switch (frame.type) {
      case FrameType.open:
        return this.#opened(frame);
      case FrameType.request:
      case FrameType.reply:
      case FrameType.replyError:
      case FrameType.cancel:
        return this.#requests.received(frame);
    }
    const isOpenedBySelf = !frame.isOpenedBySender;
    const stream = this.#streams.get(streamKey(frame.id, isOpenedBySelf));
    // Frames of a stream that has ended here may still be on their way.
    if (stream === undefined) return frame.id !== 0 && frame.id <= (isOpenedBySelf ? this.#nextStreamId - 1 : this.#lastPeerStreamId);
    switch (frame.type) {
      case FrameType.data:
        stream.received(frame.payload, frame.isText, frame.hasMore, (bytes) => {
          this.#reassemblyBytes += bytes;
          return this.#reassemblyBytes <= this.#limits.maxReassemblyBytes;
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
    if (decoded === null || !isOpenedBySender || id <= this.#lastPeerStreamId) return false;
    this.#lastPeerStreamId = id;
    const handler = this.#options.handlers.streams.get(decoded.kind);
    if (handler === undefined || this.#incomingStreamCount >= this.#limits.maxIncomingStreams) {
      this.#refuse(id, false, handler === undefined ? 'unknown_kind' : 'overloaded');
      return true;
    }
    const stream = new QueuedStream(this, id, decoded.kind, false, this.#limits, IGNORE);
    this.#streams.set(streamKey(id, false), stream);
    this.#incomingStreamCount++;
    this.guard(stream, () => {
      stream.handlers = handler(stream, decoded.bytes);
    });
    return true;
  }

  // Sending

  #sendControl(type: number, isOpenedBySelf: boolean, id: number, payload: Uint8Array, mayUseHeadroom: boolean): boolean {
    if (!this.outbox.addControl(frameHead(type, isOpenedBySelf), id, payload, mayUseHeadroom)) return false;
    this.gathered();
    return true;
  }

  #refuse(id: number, isOpenedBySelf: boolean, code: string): void {
    if (this.#sendControl(FrameType.abort, isOpenedBySelf, id, encodeCode(code), true)) return;
    // The peer acknowledges nothing, but goes on. Not now: a caller may be in the middle of a loop over streams.
    const { outbox } = this;
    this.#options.clock.defer(() => {
      if (this.outbox === outbox) this.#lose('overloaded');
    });
  }

  /** Gives waiting streams their turns while the window has room. */
  #pump(): void {
    const drained: QueuedStream[] = [];
    let stream = this.#round[0];
    while (stream !== undefined && (!stream.hasQueued || this.outbox.hasRoomFor(stream.nextBytes))) {
      this.#round.shift();
      stream.pull(QUANTUM_BYTES);
      if (stream.hasQueued) this.#round.push(stream);
      else stream.isInRound = false;
      drained.push(stream);
      stream = this.#round[0];
    }
    if (drained.length === 0) return;
    this.gathered();
    for (const each of drained) each.drained();
  }

  #flush(): void {
    const { transport } = this.#options;
    if (this.#state === 'closed') return;
    const canTransmit = this.#state === 'up' && transport.isConnected;
    this.outbox.flush(canTransmit, () => transport.bufferedBytes < MAX_TRANSPORT_BACKLOG_BYTES);
    if (canTransmit && (this.#replyFlags !== 0 || this.#isAckDue)) this.#sendBare(this.#replyFlags);
  }

  #publish(envelope: Buffer, lane: LaneNumber, sequence: number): boolean {
    return this.#transmit(envelope, lane, sequence, this.#epochs.peer);
  }

  #sendBare(flags: number, to: number = this.#epochs.peer): void {
    const envelope = Buffer.allocUnsafe(ENVELOPE_HEADER_BYTES);
    writeAfterControl(envelope, 0);
    if ((flags & Flag.probe) !== 0) {
      this.#probedAt = this.#options.clock.now();
      this.#probedControl = this.outbox.control.transmitted;
      this.#probedData = this.outbox.data.transmitted;
    }
    this.#replyFlags &= ~flags;
    this.#transmit(envelope, flags, 0, to);
  }

  #transmit(envelope: Buffer, flags: number, sequence: number, to: number): boolean {
    const { clock, transport, outgoingSubject, incomingSubject } = this.#options;
    const header = this.#header;
    const isInConversation = to !== 0 && to === this.#epochs.peer;
    header.flags = flags;
    header.peerEpoch = to;
    header.sequence = sequence;
    header.controlAck = isInConversation ? this.#incomingControl.received : 0;
    header.dataAck = isInConversation ? this.#incomingData.received : 0;
    writeHeader(envelope, header);
    const isBare = (flags & LANE_MASK) === NO_LANE;
    if (!transport.publish(outgoingSubject, envelope, isBare ? incomingSubject : undefined)) return false;
    this.counts.sent++;
    this.#sentAt = clock.now();
    if (isInConversation) {
      this.#isAckDue = false;
      this.#incomingControl.unacknowledgedBytes = this.#incomingData.unacknowledgedBytes = 0;
    }
    return true;
  }

  #acknowledgeLater(bytes: number, lane: ReceiveLane): void {
    lane.unacknowledgedBytes += bytes;
    if (lane.unacknowledgedBytes >= Math.min(MAX_ACK_BYTES, Math.max(MIN_ACK_BYTES, this.#windowBytes >> 3))) {
      this.#isAckDue = true;
      this.gathered();
    } else if (!this.#isAckScheduled) {
      this.#isAckScheduled = true;
      this.#cancelAck = this.#options.clock.setTimer(ACK_DELAY_MS, () => {
        this.#isAckScheduled = false;
        if (this.#incomingControl.unacknowledgedBytes + this.#incomingData.unacknowledgedBytes === 0) return;
        this.#isAckDue = true;
        this.#flush();
      });
    }
  }
  #cancelAck: () => void = () => {};

  #answerLater(flags: number): void {
    this.#replyFlags |= flags;
    this.gathered();
  }

  /** Answers an envelope of no conversation, so that both sides learn the epochs. Replies are not answered by probes forever. */
  #replyOutside(to: number, flags: number): void {
    const now = this.#options.clock.now();
    if (now - this.#repliedAt < MIN_REPLY_MS) return;
    this.#repliedAt = now;
    this.#sendBare((flags & Flag.probe) !== 0 ? Flag.probeReply | Flag.probe : Flag.probe, to);
  }

  // Life of the link

  #scheduleTick(): void {
    this.#cancelTick = this.#options.clock.setTimer(TICK_MS, () => {
      this.#scheduleTick();
      this.#tick();
    });
  }

  #tick(): void {
    const { clock, transport } = this.#options;
    const now = clock.now();
    // A stalled process must not take its own stall for the silence of its peers.
    const elapsed = Math.min(now - this.#tickedAt, 2 * TICK_MS);
    this.#tickedAt = now;
    if (!transport.isConnected) {
      this.#pausedMs += elapsed;
      if (this.#pausedMs > MAX_PAUSE_MS && this.#canOpen) this.#lose('transport_disconnected');
      return;
    }
    if (this.#state !== 'up') {
      this.#tickDown(now, elapsed);
      return;
    }
    this.#silentMs += elapsed;
    if (this.#silentMs > MAX_SILENCE_MS) {
      this.#lose('silent');
      return;
    }
    if (this.#hasNoResponders && this.#silentMs > MAX_SILENCE_WITHOUT_RESPONDERS_MS) {
      this.#lose('no_responders');
      return;
    }
    const { control, data } = this.outbox;
    const isWaiting = (lane: SendLane): boolean => lane.hasUnacknowledged && now - lane.progressedAt >= this.#probeMs;
    if (now - this.#probedAt >= this.#probeMs && (isWaiting(control) || isWaiting(data))) {
      this.#sendBare(Flag.probe);
      this.#probeMs = Math.min(MAX_PROBE_MS, this.#probeMs * 2);
    } else if (now - this.#sentAt >= HEARTBEAT_MS - TICK_MS / 2) this.#sendBare(0);
    if (control.hasUntransmitted || data.hasUntransmitted) this.#flush();
  }

  #tickDown(now: number, elapsed: number): void {
    this.#silentMs += elapsed;
    if (this.#state === 'connecting' && this.#silentMs > MAX_SILENCE_MS) {
      this.#lose(this.#hasNoResponders ? 'no_responders' : 'silent');
      return;
    }
    const interval = this.#state === 'lost' && now - this.#startedAt > HELLO_MS * 4 ? LOST_HELLO_MS : HELLO_MS;
    if (now - this.#sentAt >= interval - TICK_MS / 2) this.#sendBare(Flag.probe, 0);
  }

  #transportChanged(isConnected: boolean): void {
    if (!isConnected) return;
    this.#pausedMs = 0;
    this.#silentMs = 0;
    this.#hasNoResponders = false;
    // Both directions may have lost envelopes with the old connection.
    if (this.#state === 'up') this.#sendBare(Flag.probe | Flag.controlGap | Flag.dataGap);
    else this.#sendBare(Flag.probe, 0);
  }

  #up(): void {
    this.#state = 'up';
    this.#pausedMs = 0;
    this.#options.log({ event: 'up', peer: this.peer });
    this.gathered();
    for (const listener of this.#upListeners) this.#guardListener(listener);
  }

  /** Ends all streams and requests, and starts a new conversation. */
  #lose(reason: LossReason): void {
    const wasUsable = this.#canOpen;
    const isPeerNew = reason === 'peer_restarted' || reason === 'peer_closed';
    this.#epochs.renew(isPeerNew);
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    this.#round.length = 0;
    this.#incomingStreamCount = 0;
    this.#nextStreamId = 1;
    this.#lastPeerStreamId = 0;
    this.counts.retransmitted += this.outbox.retransmittedCount;
    this.#header = this.#newHeader();
    this.#incomingControl = new ReceiveLane();
    this.#incomingData = new ReceiveLane();
    const requests = this.#requests;
    this.#requests = this.#newRequests();
    this.#isAckDue = false;
    this.#replyFlags = 0;
    this.#cancelAck();
    this.#isAckScheduled = false;
    this.#silentMs = 0;
    this.#pausedMs = 0;
    this.#probedControl = this.#probedData = 0;
    this.#probeMs = MIN_PROBE_MS;
    this.#startedAt = this.#options.clock.now();
    this.#state = reason === 'closed' ? 'closed' : 'lost';
    // Ended streams add frames to the old outbox only.
    this.outbox = this.#newOutbox();
    for (const stream of streams) stream.end({ kind: 'link_lost', reason });
    requests.end(new LinkError('link_lost', `the link to ${this.peer} is lost: ${reason}`));
    if (!wasUsable) return;
    this.counts.losses++;
    this.#options.log({ event: 'lost', peer: this.peer, reason });
    for (const listener of this.#lostListeners) this.#guardListener(() => listener(reason));
    if (this.#state === 'lost') this.#sendBare(Flag.probe, 0);
  }

  get #canOpen(): boolean {
    return this.#state === 'up' || this.#state === 'connecting';
  }

  #lostError(): LinkError {
    return new LinkError('link_lost', `no link to ${this.peer}`);
  }

  #violation(what: string): void {
    this.#malformed(what);
    this.#lose('violation');
  }

  #malformed(what: string): void {
    const count = ++this.counts.malformed;
    if (/^10*$/.test(String(count))) this.#options.log({ event: 'malformed', peer: this.peer, reason: what, count });
  }

  #handlerFailed(kind: string, error: unknown): void {
    // Only the name: the text of an error could quote content.
    this.#options.log({
      event: 'handler_failed',
      peer: this.peer,
      reason: `${kind}: ${error instanceof Error ? error.name : typeof error}`,
    });
  }

  #guardListener(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#handlerFailed('listener', error);
    }
  }

  #newHeader(): Omit<EnvelopeHeader, 'afterControl'> {
    return {
      version: VERSION,
      flags: 0,
      maxVersion: VERSION,
      epoch: this.#epochs.own,
      peerEpoch: 0,
      sequence: 0,
      controlAck: 0,
      dataAck: 0,
    };
  }

  #newOutbox(): Outbox {
    return new Outbox(
      {
        maxControlBytes: this.#limits.maxControlBytes,
        now: () => this.#options.clock.now(),
        publish: (envelope, lane, sequence) => this.#publish(envelope, lane, sequence),
      },
      this.#windowBytes,
    );
  }

  #newRequests(): Requests {
    return new Requests({
      peer: this.peer,
      clock: this.#options.clock,
      handlers: this.#options.handlers.requests,
      maxIncoming: this.#limits.maxIncomingRequests,
      maxOutgoing: this.#limits.maxOutgoingRequests,
      send: (type, id, payload, mayUseHeadroom) => this.#sendControl(type, true, id, payload, mayUseHeadroom),
      onHandlerFailed: (kind, error) => this.#handlerFailed(kind, error),
    });
  }
}

/** Both sides number the streams that they open from 1. */
function streamKey(id: number, isOpenedBySelf: boolean): number {
  return id * 2 + (isOpenedBySelf ? 1 : 0);
}
