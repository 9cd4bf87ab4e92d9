/**
 * `ReliableTransfer` delivers the frames of each lane of a conversation once and in order, over NATS, which may lose messages.
 *
 * The receiver acknowledges envelopes and reports gaps, and the sender retransmits. A sender that misses acknowledgements sends a probe.
 */
import type { Clock } from '../transport/clock.js';
import type { ClusterTransport } from '../transport/cluster-transport.js';
import { CONTROL_LANE, DATA_LANE, type EnvelopeHeader, Flag, LANE_MASK, type LaneNumber, NO_LANE } from './envelope.js';
import type { EnvelopeSender } from './envelope-sender.js';
import type { Epochs } from './epochs.js';
import { eachFrame, type Frame, frameHead, hasWholeFrames } from './frame.js';
import { ReceiveLane, type SendLane } from './lanes.js';
import type { LinkCounts } from './link-options.js';
import { Outbox } from './outbox.js';
import { TICK_MS } from './peer-silence.js';

/** Time without sending after which an envelope without frames is sent. */
const KEEPALIVE_MS = 1_000;
/** Time without an acknowledgement until a probe is sent. Doubles with each unanswered probe. */
const MIN_PROBE_MS = 250;
const MAX_PROBE_MS = 1_000;
/** Delay of an acknowledgement, unless another envelope carries it earlier. */
const ACK_DELAY_MS = 10;
/** Maximum time for which frames are gathered while the event loop is busy. */
const GATHER_MS = 2;
/** Minimum time between two retransmissions of a lane. */
const MIN_REWIND_MS = 10;
/** Time until the same gap is reported again. */
const REPEAT_GAP_MS = 100;
/** Bytes in the transport's buffer above which bulk data waits, because the control frames of all links share the socket. */
const MAX_TRANSPORT_BACKLOG_BYTES = 2 * 1024 * 1024;
/** Bounds of the received bytes after which an acknowledgement is sent at once. Between them: an eighth of the window. */
const MAX_ACK_BYTES = 1024 * 1024;
const MIN_ACK_BYTES = 16 * 1024;

export interface ReliableTransferOptions {
  readonly transport: Pick<ClusterTransport, 'isConnected' | 'bufferedBytes'>;
  readonly clock: Clock;
  readonly sender: EnvelopeSender;
  readonly epochs: Epochs;
  readonly counts: LinkCounts;
  readonly maxControlBytes: number;
  readonly windowBytes: number;
  /** Handles a frame, in order and once. False: the frame violates the protocol. */
  readonly deliver: (frame: Frame, lane: LaneNumber) => boolean;
  /** Called after the peer acknowledged further envelopes, so that the window may have room. */
  readonly onCapacity: () => void;
  readonly onViolation: (what: string) => void;
}

export class ReliableTransfer {
  readonly outbox: Outbox;
  readonly #options: ReliableTransferOptions;
  readonly #incomingControl = new ReceiveLane();
  readonly #incomingData = new ReceiveLane();
  /** `waiting`: the peer has not answered yet, so frames are only gathered. `begun`: frames are transmitted. */
  #state: 'waiting' | 'begun' | 'ended' = 'waiting';
  #isFlushScheduled = false;
  #gatheringSince = 0;
  #cancelAck: (() => void) | null = null;
  #isAckDue = false;
  #replyFlags = 0;
  #probedAt = Number.NEGATIVE_INFINITY;
  #probeMs = MIN_PROBE_MS;
  /** Highest sequence numbers transmitted before the last probe. If its reply does not acknowledge them, envelopes were lost. */
  readonly #probed = { control: 0, data: 0 };
  readonly #rewoundAt = { control: Number.NEGATIVE_INFINITY, data: Number.NEGATIVE_INFINITY };

  constructor(options: ReliableTransferOptions) {
    this.#options = options;
    const { maxControlBytes, windowBytes, clock } = options;
    this.outbox = new Outbox(
      { maxControlBytes, now: () => clock.now(), publish: (envelope, lane, sequence) => this.#transmit(envelope, lane, sequence) },
      windowBytes,
    );
  }

  get isEnded(): boolean {
    return this.#state === 'ended';
  }

  /** Call when the peer has answered. From then on, frames are transmitted. */
  begin(): void {
    this.#state = 'begun';
    this.scheduleFlush();
  }

  /** Stops sending and delivering, permanently. */
  end(): void {
    this.#state = 'ended';
    this.#cancelAck?.();
  }

  /** Gathers a control frame. False: the control lane is full. `mayUseHeadroom`: for small error frames, see `Outbox`. */
  sendControl(type: number, isOpenedBySelf: boolean, id: number, payload: Uint8Array, mayUseHeadroom: boolean): boolean {
    if (!this.outbox.addControl(frameHead(type, isOpenedBySelf), id, payload, mayUseHeadroom)) return false;
    this.scheduleFlush();
    return true;
  }

  /** Call after a frame was gathered. Transmits at the end of the event loop's turn, or now if {@link GATHER_MS} have passed. */
  scheduleFlush(): void {
    const { clock } = this.#options;
    if (this.#isFlushScheduled) {
      if (clock.now() - this.#gatheringSince >= GATHER_MS) this.flush();
      return;
    }
    this.#isFlushScheduled = true;
    this.#gatheringSince = clock.now();
    clock.defer(() => {
      this.#isFlushScheduled = false;
      this.flush();
    });
  }

  /** Transmits gathered frames and acknowledgements that are due. */
  flush(): void {
    const { transport } = this.#options;
    if (this.isEnded) return;
    const canTransmit = this.#state === 'begun' && transport.isConnected;
    this.outbox.flush(canTransmit, () => transport.bufferedBytes < MAX_TRANSPORT_BACKLOG_BYTES);
    if (canTransmit && (this.#replyFlags !== 0 || this.#isAckDue)) this.sendBare(this.#replyFlags);
  }

  /** Sends an envelope without frames to the peer. */
  sendBare(flags: number): void {
    const { clock, epochs, sender } = this.#options;
    if ((flags & Flag.probe) !== 0) {
      this.#probedAt = clock.now();
      this.#probed.control = this.outbox.control.transmitted;
      this.#probed.data = this.outbox.data.transmitted;
    }
    this.#replyFlags &= ~flags;
    if (sender.sendBare(flags, epochs.peer, this.#incomingControl.received, this.#incomingData.received)) this.#acknowledgementsSent();
  }

  /** Call after the transport has reconnected, because envelopes of both directions may be lost. */
  resynchronize(): void {
    this.sendBare(Flag.probe | Flag.controlGap | Flag.dataGap);
  }

  /** Sends a probe or a keepalive if one is due, and frames that the transport did not accept earlier. */
  tick(now: number): void {
    const { control, data } = this.outbox;
    const isWaiting = (lane: SendLane): boolean => lane.hasUnacknowledged && now - lane.progressedAt >= this.#probeMs;
    if (now - this.#probedAt >= this.#probeMs && (isWaiting(control) || isWaiting(data))) {
      this.sendBare(Flag.probe);
      this.#probeMs = Math.min(MAX_PROBE_MS, this.#probeMs * 2);
    } else if (now - this.#options.sender.sentAt >= KEEPALIVE_MS - TICK_MS / 2) this.sendBare(0);
    if (control.hasUntransmitted || data.hasUntransmitted) this.flush();
  }

  /** Processes an envelope of the current conversation. */
  receive(header: EnvelopeHeader, envelope: Buffer): void {
    const now = this.#options.clock.now();
    const { control, data } = this.outbox;
    const hadAcknowledged = control.acknowledged + data.acknowledged;
    if (!control.acknowledge(header.controlAck, now) || !data.acknowledge(header.dataAck, now)) {
      this.#options.onViolation('acknowledgement');
      return;
    }
    const hasProgressed = control.acknowledged + data.acknowledged !== hadAcknowledged;
    if (hasProgressed) this.#probeMs = MIN_PROBE_MS;
    if ((header.flags & ~LANE_MASK) !== 0) this.#receiveFlags(header.flags, now);
    const lane = header.flags & LANE_MASK;
    if (lane !== NO_LANE) this.#receiveFrames(lane as LaneNumber, header, envelope, now);
    if (hasProgressed && !this.isEnded) this.#options.onCapacity();
  }

  #receiveFlags(flags: number, now: number): void {
    const { control, data } = this.outbox;
    const isReply = (flags & Flag.probeReply) !== 0;
    const isControlLost = isReply && control.acknowledged < this.#probed.control;
    const isDataLost = isReply && data.acknowledged < this.#probed.data;
    if (isReply) this.#probed.control = this.#probed.data = 0;
    if (isControlLost || (flags & Flag.controlGap) !== 0) this.#rewind('control', now);
    if (isDataLost || (flags & Flag.dataGap) !== 0) this.#rewind('data', now);
    if ((flags & Flag.probe) !== 0) this.#answerLater(Flag.probeReply);
    if (control.hasUntransmitted || data.hasUntransmitted) this.scheduleFlush();
  }

  #rewind(name: 'control' | 'data', now: number): void {
    const lane = this.outbox[name];
    if (!lane.hasUnacknowledged || now - this.#rewoundAt[name] < MIN_REWIND_MS) return;
    this.#rewoundAt[name] = now;
    lane.rewind(now);
  }

  #receiveFrames(number: LaneNumber, header: EnvelopeHeader, envelope: Buffer, now: number): void {
    const { counts, deliver, onViolation } = this.#options;
    const lane = number === CONTROL_LANE ? this.#incomingControl : this.#incomingData;
    if (header.sequence <= lane.received) {
      counts.duplicates++;
      // `MAX_ACK_BYTES` makes an acknowledgement due at once. The peer has probably missed the last one.
      this.#acknowledgeLater(MAX_ACK_BYTES, lane);
      return;
    }
    const lacksControl = number === DATA_LANE && header.afterControl > this.#incomingControl.received;
    if (header.sequence !== lane.received + 1 || lacksControl) {
      counts.gaps++;
      let flags = 0;
      if (lacksControl && this.#incomingControl.shouldReportGap(now, REPEAT_GAP_MS)) flags |= Flag.controlGap;
      if (lane.shouldReportGap(now, REPEAT_GAP_MS)) flags |= number === CONTROL_LANE ? Flag.controlGap : Flag.dataGap;
      if (flags !== 0) this.#answerLater(flags);
      return;
    }
    if (!hasWholeFrames(envelope)) {
      onViolation('frames');
      return;
    }
    lane.received = header.sequence;
    this.#acknowledgeLater(envelope.length, lane);
    eachFrame(envelope, (frame) => {
      if (!deliver(frame, number)) {
        onViolation(`frame ${frame.type}`);
        return false;
      }
      // The handler of the frame may have ended this conversation.
      return !this.isEnded;
    });
  }

  #transmit(envelope: Buffer, lane: LaneNumber, sequence: number): boolean {
    const { epochs, sender } = this.#options;
    if (!sender.send(envelope, lane, sequence, epochs.peer, this.#incomingControl.received, this.#incomingData.received)) return false;
    this.#acknowledgementsSent();
    return true;
  }

  /** Call after an envelope was sent. Every envelope contains the current acknowledgements. */
  #acknowledgementsSent(): void {
    this.#isAckDue = false;
    this.#incomingControl.unacknowledgedBytes = this.#incomingData.unacknowledgedBytes = 0;
  }

  #acknowledgeLater(bytes: number, lane: ReceiveLane): void {
    lane.unacknowledgedBytes += bytes;
    if (lane.unacknowledgedBytes >= Math.min(MAX_ACK_BYTES, Math.max(MIN_ACK_BYTES, this.outbox.windowBytes >> 3))) {
      this.#isAckDue = true;
      this.scheduleFlush();
      return;
    }
    this.#cancelAck ??= this.#options.clock.setTimer(ACK_DELAY_MS, () => {
      this.#cancelAck = null;
      if (this.#incomingControl.unacknowledgedBytes + this.#incomingData.unacknowledgedBytes === 0) return;
      this.#isAckDue = true;
      this.flush();
    });
  }

  #answerLater(flags: number): void {
    this.#replyFlags |= flags;
    this.scheduleFlush();
  }
}
