/** `EnvelopeSender`: writes the headers of envelopes to one peer, and publishes the envelopes over NATS. */
import { ENVELOPE_HEADER_BYTES, Flag, LANE_MASK, MIN_VERSION, NO_LANE, VERSION, writeAfterControl, writeHeader } from './envelope.js';
import type { Epochs } from './epochs.js';
import type { LinkCounts, PeerLinkOptions } from './link-options.js';

export type EnvelopeSenderOptions = Pick<PeerLinkOptions, 'clock' | 'transport' | 'outgoingSubject' | 'incomingSubject'>;

export class EnvelopeSender {
  readonly #options: EnvelopeSenderOptions;
  readonly #epochs: Epochs;
  readonly #counts: LinkCounts;
  /** Reused for all envelopes, to save an allocation per envelope. */
  readonly #header = {
    version: MIN_VERSION,
    flags: 0,
    maxVersion: VERSION,
    epoch: 0,
    peerEpoch: 0,
    sequence: 0,
    controlAck: 0,
    dataAck: 0,
  };
  #sentAt = Number.NEGATIVE_INFINITY;

  constructor(options: EnvelopeSenderOptions, epochs: Epochs, counts: LinkCounts) {
    this.#options = options;
    this.#epochs = epochs;
    this.#counts = counts;
  }

  /** Time of the last envelope, monotonic in milliseconds. */
  get sentAt(): number {
    return this.#sentAt;
  }

  /** Version of sent envelopes: the newest that both sides support. The oldest supported one while the peer's is unknown. */
  set version(version: number) {
    this.#header.version = version;
  }

  /** Sends a probe, which contains this side's epoch and asks for the peer's. */
  hello(): void {
    this.sendBare(Flag.probe, 0, 0, 0);
  }

  /** Sends an envelope without frames. `peerEpoch`: 0 if unknown. False: the transport did not accept it. */
  sendBare(flags: number, peerEpoch: number, controlAck: number, dataAck: number): boolean {
    const envelope = Buffer.allocUnsafe(ENVELOPE_HEADER_BYTES);
    writeAfterControl(envelope, 0);
    return this.send(envelope, flags, 0, peerEpoch, controlAck, dataAck);
  }

  /** Writes the header of an envelope, and publishes it. False: the transport did not accept it. */
  send(envelope: Buffer, flags: number, sequence: number, peerEpoch: number, controlAck: number, dataAck: number): boolean {
    const { clock, transport, outgoingSubject, incomingSubject } = this.#options;
    const header = this.#header;
    header.flags = flags;
    header.epoch = this.#epochs.own;
    header.peerEpoch = peerEpoch;
    header.sequence = sequence;
    header.controlAck = controlAck;
    header.dataAck = dataAck;
    writeHeader(envelope, header);
    const isBare = (flags & LANE_MASK) === NO_LANE;
    if (!transport.publish(outgoingSubject, envelope, isBare ? incomingSubject : undefined)) return false;
    this.#counts.sent++;
    this.#sentAt = clock.now();
    return true;
  }
}
