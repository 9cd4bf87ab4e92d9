/**
 * `Outbox`: sending side of a conversation (all exchanges over a link until it is lost). Gathers frames into envelopes, and transmits
 * them in two lanes (control and data).
 *
 * The window limits the unacknowledged bytes of the data lane. The `head` of a frame is its first byte: type and flags.
 */
import { CONTROL_LANE, DATA_LANE, ENVELOPE_HEADER_BYTES, type LaneNumber, writeAfterControl } from './envelope.js';
import { FrameBatch, MAX_FRAGMENT_BYTES } from './frame.js';
import { SendLane } from './lanes.js';

/** Approximate maximum of payload bytes in one envelope. A larger frame gets its own envelope. */
const GATHER_BYTES = 64 * 1024;
const MIN_FRAGMENT_BYTES = 16 * 1024;
/** Size of memory blocks that small envelopes share, which is cheaper than one allocation per envelope. */
const BLOCK_BYTES = 64 * 1024;
/** Extra space of the control lane for small frames that end something: cancels, aborts, and errors such as `overloaded`. */
const CONTROL_HEADROOM_BYTES = 1024 * 1024;

export interface OutboxOptions {
  readonly maxControlBytes: number;
  readonly now: () => number;
  /** Publishes an envelope. False: the transport does not accept it now. */
  readonly publish: (envelope: Buffer, lane: LaneNumber, sequence: number) => boolean;
}

export class Outbox {
  readonly control = new SendLane();
  readonly data = new SendLane();
  readonly #options: OutboxOptions;
  readonly #controlBatch = new FrameBatch();
  readonly #dataBatch = new FrameBatch();
  #block = Buffer.alloc(0);
  windowBytes: number;
  retransmittedCount = 0;

  constructor(options: OutboxOptions, windowBytes: number) {
    this.#options = options;
    this.windowBytes = windowBytes;
  }

  get retainedBytes(): number {
    return this.control.unacknowledgedBytes + this.#controlBatch.bytes + this.data.unacknowledgedBytes + this.#dataBatch.bytes;
  }

  /** Maximum fragment size: half of the window within fixed limits, so that several streams can share the window. */
  get fragmentBytes(): number {
    return Math.min(MAX_FRAGMENT_BYTES, Math.max(MIN_FRAGMENT_BYTES, this.windowBytes >> 1));
  }

  /** Whether the window has room. A frame larger than the window may be sent when everything else is acknowledged. */
  hasRoomFor(bytes: number): boolean {
    const used = this.data.unacknowledgedBytes + this.#dataBatch.bytes;
    return used === 0 || used + bytes <= this.windowBytes;
  }

  addData(head: number, id: number, payload: Uint8Array): void {
    if (this.#dataBatch.bytes + payload.length > GATHER_BYTES) this.#packAll();
    this.#dataBatch.add(head, id, payload);
  }

  /** Adds a control frame. Returns false if the lane is full; with `mayUseHeadroom`, it has {@link CONTROL_HEADROOM_BYTES} more space. */
  addControl(head: number, id: number, payload: Uint8Array, mayUseHeadroom: boolean): boolean {
    const max = this.#options.maxControlBytes + (mayUseHeadroom ? CONTROL_HEADROOM_BYTES : 0);
    if (this.control.unacknowledgedBytes + this.#controlBatch.bytes + payload.length > max) return false;
    if (this.#controlBatch.bytes + payload.length > GATHER_BYTES) this.#pack(this.control, this.#controlBatch);
    this.#controlBatch.add(head, id, payload);
    return true;
  }

  /** Puts gathered frames into envelopes, and transmits as many as the transport accepts. */
  flush(canTransmit: boolean, canTransmitData: () => boolean): void {
    this.#packAll();
    if (!canTransmit) return;
    while (this.#transmit(this.control, CONTROL_LANE));
    while (this.data.hasUntransmitted && canTransmitData() && this.#transmit(this.data, DATA_LANE));
  }

  /** Packs control frames first, because a data frame may belong to a stream that a control frame opens. */
  #packAll(): void {
    this.#pack(this.control, this.#controlBatch);
    this.#pack(this.data, this.#dataBatch);
  }

  /** Writes gathered frames into an envelope of a lane. No effect without frames, because receivers reject a lane's empty envelope. */
  #pack(lane: SendLane, batch: FrameBatch): void {
    if (batch.isEmpty) return;
    const envelope = this.#allocate(ENVELOPE_HEADER_BYTES + batch.bytes);
    batch.writeTo(envelope);
    // The receiver of a data envelope must process this control envelope first.
    writeAfterControl(envelope, lane === this.data ? this.control.lastSequence : 0);
    batch.clear();
    lane.push(envelope);
  }

  #transmit(lane: SendLane, number: LaneNumber): boolean {
    const envelope = lane.next();
    if (envelope === null || !this.#options.publish(envelope, number, lane.nextSequence)) return false;
    if (lane.advance(this.#options.now())) this.retransmittedCount++;
    return true;
  }

  #allocate(bytes: number): Buffer {
    if (bytes > BLOCK_BYTES / 4) return Buffer.allocUnsafeSlow(bytes);
    if (bytes > this.#block.length) this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    const envelope = this.#block.subarray(0, bytes);
    this.#block = this.#block.subarray(bytes);
    return envelope;
  }
}
