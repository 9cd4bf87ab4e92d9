/**
 * Envelope: message of the link protocol that is published over NATS, a header followed by frames (frame.ts).
 *
 * Header, with big-endian integers:
 *
 * | bytes | field |
 * |---|---|
 * | 1 | version of the format |
 * | 1 | flags, with the lane in the two lowest bits |
 * | 1 | newest version that the sender reads |
 * | 1 | zero |
 * | 6 | epoch of the sender |
 * | 6 | epoch of the receiver, 0 if unknown |
 * | 6 | sequence number in the lane, 0 without frames |
 * | 6 | acknowledged sequence number, control lane |
 * | 6 | acknowledged sequence number, data lane |
 * | 6 | data lane: sequence number of the control envelope that the receiver must process first |
 */
export const ENVELOPE_HEADER_BYTES = 40;
export const MAX_ENVELOPE_BYTES = 768 * 1024;

export const VERSION = 1;
/** Oldest supported version: the previous one, so that coordinators can be updated one after the other. */
export const MIN_VERSION = Math.max(1, VERSION - 1);

export const LANE_MASK = 3;
export const NO_LANE = 0;
export const CONTROL_LANE = 1;
export const DATA_LANE = 2;
export type LaneNumber = typeof CONTROL_LANE | typeof DATA_LANE;

export const Flag = {
  /** Asks the receiver for a reply with its acknowledgements. */
  probe: 4,
  probeReply: 8,
  /** The sender missed an envelope of the control lane. All envelopes after its acknowledgement must be retransmitted. */
  controlGap: 16,
  /** The sender missed an envelope of the data lane. Handled like `controlGap`. */
  dataGap: 32,
  goodbye: 64,
} as const;

export interface EnvelopeHeader {
  version: number;
  flags: number;
  maxVersion: number;
  epoch: number;
  peerEpoch: number;
  sequence: number;
  controlAck: number;
  dataAck: number;
  afterControl: number;
}

export function writeHeader(target: Buffer, header: Omit<EnvelopeHeader, 'afterControl'>): void {
  target[0] = header.version;
  target[1] = header.flags;
  target[2] = header.maxVersion;
  target[3] = 0;
  target.writeUIntBE(header.epoch, 4, 6);
  target.writeUIntBE(header.peerEpoch, 10, 6);
  target.writeUIntBE(header.sequence, 16, 6);
  target.writeUIntBE(header.controlAck, 22, 6);
  target.writeUIntBE(header.dataAck, 28, 6);
}

/** Writes the last field of the header. Unlike the other fields, it stays the same at a retransmission. */
export function writeAfterControl(target: Buffer, sequence: number): void {
  target.writeUIntBE(sequence, 34, 6);
}

/** Version of an envelope, if this coordinator does not support it. Null: supported, or too few bytes for an envelope. */
export function unsupportedVersion(bytes: Uint8Array): number | null {
  const version = bytes[0] ?? 0;
  return bytes.length < ENVELOPE_HEADER_BYTES || (version >= MIN_VERSION && version <= VERSION) ? null : version;
}

/** Null: the bytes are not an envelope, or of an unsupported version. */
export function readHeader(bytes: Buffer): EnvelopeHeader | null {
  if (bytes.length < ENVELOPE_HEADER_BYTES || bytes.length > MAX_ENVELOPE_BYTES) return null;
  const version = bytes[0] ?? 0;
  const flags = bytes[1] ?? 0;
  const header = {
    version,
    flags,
    maxVersion: bytes[2] ?? 0,
    epoch: bytes.readUIntBE(4, 6),
    peerEpoch: bytes.readUIntBE(10, 6),
    sequence: bytes.readUIntBE(16, 6),
    controlAck: bytes.readUIntBE(22, 6),
    dataAck: bytes.readUIntBE(28, 6),
    afterControl: bytes.readUIntBE(34, 6),
  };
  const lane = flags & LANE_MASK;
  if (version < MIN_VERSION || version > VERSION || header.epoch === 0 || lane === 3) return null;
  if ((lane === NO_LANE) !== (header.sequence === 0)) return null;
  if ((lane === NO_LANE) !== (bytes.length === ENVELOPE_HEADER_BYTES)) return null;
  return header;
}
