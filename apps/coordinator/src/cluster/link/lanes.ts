/**
 * `SendLane` and `ReceiveLane`: both ends of an ordered sequence of envelopes, made reliable by go-back-N retransmission.
 *
 * A link has two lanes in each direction, so that control frames never wait behind bulk data.
 */

/** Outgoing envelopes, retained until the peer acknowledges them. */
export class SendLane {
  readonly #envelopes: Buffer[] = [];
  /** Index of the oldest unacknowledged envelope. Acknowledged envelopes before the index are removed in batches. */
  #head = 0;
  /** Index of the next envelope to transmit. */
  #cursor = 0;
  /** Sequence number of the envelope at `#head`. */
  #headSequence = 1;
  /** Highest transmitted sequence number. */
  #transmitted = 0;
  unacknowledgedBytes = 0;
  /** Time of the last acknowledgement, or of the first transmission after everything was acknowledged. */
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

  /** Marks the next envelope as transmitted. Returns whether the transmission was a repetition. */
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

const EMPTY = Buffer.alloc(0);

/** State of incoming envelopes. Envelopes out of order are dropped, not stored: the peer sends them again. */
export class ReceiveLane {
  /** Highest sequence number without a gap before. */
  received = 0;
  /** Bytes received since the last acknowledgement was sent. */
  unacknowledgedBytes = 0;
  /** Time of the last report of a gap, and the missing sequence number. */
  #reportedAt = Number.NEGATIVE_INFINITY;
  #reportedFor = 0;

  /** Whether the missing envelope should be reported now: once, and again after `repeatMs`. */
  shouldReportGap(now: number, repeatMs: number): boolean {
    if (this.#reportedFor === this.received + 1 && now - this.#reportedAt < repeatMs) return false;
    this.#reportedFor = this.received + 1;
    this.#reportedAt = now;
    return true;
  }
}
