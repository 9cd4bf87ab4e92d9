/** `SendLane` and `ReceiveLane`: reliable, ordered envelopes with go-back-N. Control frames have their own lane. */

/** Outgoing envelopes until their acknowledgement. */
export class SendLane {
  readonly #envelopes: Buffer[] = [];
  /** Index of the oldest unacknowledged envelope. Smaller indices are empty places, removed in batches. */
  #head = 0;
  /** Index of the next envelope to transmit. */
  #cursor = 0;
  #headSequence = 1;
  /** Highest sequence number ever transmitted. */
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

  /** Sequence number of {@link next}. */
  get nextSequence(): number {
    return this.#headSequence + (this.#cursor - this.#head);
  }

  next(): Buffer | null {
    return this.#envelopes[this.#cursor] ?? null;
  }

  /** Counts {@link next} as transmitted. Returns true if it had been transmitted before. */
  advance(now: number): boolean {
    const sequence = this.nextSequence;
    if (this.#cursor === this.#head) this.progressedAt = now;
    this.#cursor++;
    if (sequence <= this.#transmitted) return true;
    this.#transmitted = sequence;
    return false;
  }

  /** False if the number was never transmitted. */
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

  /** Transmits everything unacknowledged again. */
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

/** Incoming envelopes. Out-of-order ones are dropped and sent again, so that none are stored. */
export class ReceiveLane {
  /** Highest sequence number without a gap before. */
  received = 0;
  /** Bytes received since the last acknowledgement was sent. */
  unacknowledgedBytes = 0;
  /** Time of the last report of a gap, and the missing number. */
  #reportedAt = Number.NEGATIVE_INFINITY;
  #reportedFor = 0;

  /** True if this gap should be reported now: once per missing envelope, and again after `repeatMs`. */
  shouldReportGap(now: number, repeatMs: number): boolean {
    if (this.#reportedFor === this.received + 1 && now - this.#reportedAt < repeatMs) return false;
    this.#reportedFor = this.received + 1;
    this.#reportedAt = now;
    return true;
  }
}
