/**
 * `SendLane` and `ReceiveLane`: both ends of a lane, an ordered sequence of envelopes with go-back-N retransmission.
 *
 * A link has two lanes in each direction, so that control frames do not queue behind bulk data. Go-back-N: after a loss, the sender
 * repeats all unacknowledged envelopes.
 */

/** Outgoing envelopes, retained until the peer acknowledges them. */
export class SendLane {
  readonly #envelopes: Buffer[] = [];
  /** Index of the oldest unacknowledged envelope. Envelopes before it are acknowledged, and are removed in batches. */
  #head = 0;
  /** Index of the next envelope to transmit. */
  #cursor = 0;
  /** Sequence number of the envelope at `#head`. */
  #headSequence = 1;
  #transmitted = 0;
  unacknowledgedBytes = 0;
  /** Time of the last acknowledgement or rewind, or of the transmission of the oldest unacknowledged envelope: the latest of them. */
  progressedAt = 0;

  get lastSequence(): number {
    return this.#headSequence + (this.#envelopes.length - this.#head) - 1;
  }

  get acknowledged(): number {
    return this.#headSequence - 1;
  }

  get transmitted(): number {
    return this.#transmitted;
  }

  get hasUnacknowledged(): boolean {
    return this.#head < this.#envelopes.length;
  }

  get hasUntransmitted(): boolean {
    return this.#cursor < this.#envelopes.length;
  }

  push(envelope: Buffer): void {
    this.#envelopes.push(envelope);
    this.unacknowledgedBytes += envelope.length;
  }

  /** Sequence number of the envelope that {@link next} returns. */
  get nextSequence(): number {
    return this.#headSequence + (this.#cursor - this.#head);
  }

  /** Next envelope to transmit; null: none. */
  next(): Buffer | null {
    return this.#envelopes[this.#cursor] ?? null;
  }

  /** Marks the next envelope as transmitted. Returns whether it was a retransmission. */
  advance(now: number): boolean {
    const sequence = this.nextSequence;
    if (this.#cursor === this.#head) this.progressedAt = now;
    this.#cursor++;
    if (sequence <= this.#transmitted) return true;
    this.#transmitted = sequence;
    return false;
  }

  /** Removes envelopes up to a sequence number. False: the peer acknowledged an envelope that was never transmitted. */
  acknowledge(sequence: number, now: number): boolean {
    if (sequence > this.#transmitted) return false;
    const count = sequence - this.acknowledged;
    if (count <= 0) return true;
    for (let index = this.#head; index < this.#head + count; index++) {
      this.unacknowledgedBytes -= (this.#envelopes[index] as Buffer).length;
      this.#envelopes[index] = EMPTY;
    }
    this.#head += count;
    this.#headSequence += count;
    this.#cursor = Math.max(this.#cursor, this.#head);
    this.progressedAt = now;
    if (this.#head === this.#envelopes.length || this.#head >= 1024) this.#compact();
    return true;
  }

  /** Moves back to the oldest unacknowledged envelope, so that all unacknowledged envelopes are transmitted again. */
  rewind(now: number): void {
    this.#cursor = this.#head;
    this.progressedAt = now;
  }

  #compact(): void {
    this.#envelopes.splice(0, this.#head);
    this.#cursor -= this.#head;
    this.#head = 0;
  }
}

/** Replaces an acknowledged envelope until its batch is removed, so that its memory is free. */
const EMPTY = Buffer.alloc(0);

/** Receiving end. The caller drops envelopes out of order, because the peer retransmits them. */
export class ReceiveLane {
  /** Highest sequence number up to which all envelopes were received. */
  received = 0;
  /** Bytes received since the last acknowledgement was sent. */
  unacknowledgedBytes = 0;
  /** Time of the last gap report, and the sequence number that it reported as missing. */
  #reportedAt = Number.NEGATIVE_INFINITY;
  #reportedFor = 0;

  /** Whether to report the missing envelope now. True once per envelope, and again after `repeatMs`. */
  shouldReportGap(now: number, repeatMs: number): boolean {
    if (this.#reportedFor === this.received + 1 && now - this.#reportedAt < repeatMs) return false;
    this.#reportedFor = this.received + 1;
    this.#reportedAt = now;
    return true;
  }
}
