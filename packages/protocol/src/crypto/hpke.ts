/**
 * HPKE (RFC 9180) in base mode, for requests and responses of plain mode. Section numbers refer to RFC 9180.
 *
 * Suite: DHKEM(X25519, HKDF-SHA256) 0x0020, HKDF-SHA256 0x0001, AES-256-GCM 0x0002.
 */
import { concatBytes, utf8 } from '../bytes.js';
import { type AeadSecret, KEY_BYTES, NONCE_BYTES, OpeningSequence, type SealedParts, SealingSequence } from './aead-sequence.js';
import { HASH_BYTES, hkdfExpand, hkdfExtract } from './hkdf.js';
import { generateSealingKeyPair, importRecipientKey, importX25519, type SealingKeyPair, sharedSecret } from './x25519.js';

/** Section 4.1: suite of the KEM alone. */
const KEM_SUITE = concatBytes(utf8('KEM'), Uint8Array.of(0x00, 0x20));
/** Section 5.1: suite of KEM, KDF and AEAD. */
const SUITE = concatBytes(utf8('HPKE'), Uint8Array.of(0x00, 0x20, 0x00, 0x01, 0x00, 0x02));
const MODE_BASE = Uint8Array.of(0x00);
const EMPTY = new Uint8Array(0);
/** Section 5.1: base mode has an empty psk_id, so the hash is constant. */
const PSK_ID_HASH = labeledExtract(labelOf(SUITE, 'psk_id_hash'), EMPTY, EMPTY);
// Labels of sections 4.1, 5.1 and 5.3.
const EAE_PRK = labelOf(KEM_SUITE, 'eae_prk');
const SHARED_SECRET = labelOf(KEM_SUITE, 'shared_secret');
const INFO_HASH = labelOf(SUITE, 'info_hash');
const SECRET = labelOf(SUITE, 'secret');
const KEY = labelOf(SUITE, 'key');
const BASE_NONCE = labelOf(SUITE, 'base_nonce');
const EXP = labelOf(SUITE, 'exp');
const SEC = labelOf(SUITE, 'sec');

export interface SenderContext {
  /** Encapsulated key, 32 bytes, for the recipient. */
  readonly enc: Uint8Array;
  /** Ciphertext ‖ tag of the next message (section 5.2). */
  seal(aad: Uint8Array, plaintext: Uint8Array): Uint8Array;
  /** Like `seal`, with ciphertext and tag separate. */
  sealParts(aad: Uint8Array, plaintext: Uint8Array): SealedParts;
  /** Section 5.3. */
  exportSecret(context: Uint8Array, length: number): Uint8Array;
}

export interface RecipientContext {
  /** Opens the next message. Throws SealingError `open_failed` or `exhausted`, and then still expects the same message. */
  open(aad: Uint8Array, ciphertext: Uint8Array): Uint8Array;
  /** Section 5.3. */
  exportSecret(context: Uint8Array, length: number): Uint8Array;
}

/** Output of Encap for one recipient. Use it for one context only, because a second with equal `info` would repeat key and nonces. */
export interface Encapsulation {
  /** Encapsulated key, 32 bytes, for the recipient. */
  readonly enc: Uint8Array;
  /** 32 bytes. */
  readonly sharedSecret: Uint8Array;
}

/**
 * Section 4.1, Encap.
 *
 * @param ephemeral Fixed key pair for known-answer tests.
 * @throws {SealingError} `bad_key`: the recipient's key is not 32 bytes, or has small order.
 */
export function encapsulate(recipientPublicKey: Uint8Array, ephemeral = generateSealingKeyPair()): Encapsulation {
  const { publicKey: enc, privateKey } = ephemeral;
  const dh = sharedSecret(privateKey, importRecipientKey(recipientPublicKey));
  return { enc, sharedSecret: kemSecret(dh, enc, recipientPublicKey) };
}

/** Section 5.1.1, SetupBaseS. Never reuse an encapsulation. */
export function setupSender(encapsulation: Encapsulation, info: Uint8Array): SenderContext {
  const schedule = keySchedule(encapsulation.sharedSecret, info);
  const sequence = new SealingSequence(schedule);
  return {
    enc: encapsulation.enc,
    seal: (aad, plaintext) => sequence.seal(aad, plaintext),
    sealParts: (aad, plaintext) => sequence.sealParts(aad, plaintext),
    exportSecret: (context, length) => exportFrom(schedule, context, length),
  };
}

/** Section 5.1.1, SetupBaseR. Throws SealingError `bad_key` on an `enc` that is not 32 bytes or has small order. */
export function setupRecipient(recipient: SealingKeyPair, enc: Uint8Array, info: Uint8Array): RecipientContext {
  const schedule = keySchedule(decapsulate(recipient, enc), info);
  const sequence = new OpeningSequence(schedule);
  return {
    open: (aad, ciphertext) => sequence.open(aad, ciphertext),
    exportSecret: (context, length) => exportFrom(schedule, context, length),
  };
}

/** Section 4.1, Decap. Throws SealingError `bad_key`, like {@link setupRecipient}. */
export function decapsulate(recipient: SealingKeyPair, enc: Uint8Array): Uint8Array {
  return kemSecret(sharedSecret(recipient.privateKey, importX25519(enc)), enc, recipient.publicKey);
}

/** Derived in section 5.1: AEAD key, base nonce and exporter secret. */
interface KeySchedule extends AeadSecret {
  readonly exporterSecret: Uint8Array;
}

/** Section 5.1, KeySchedule in base mode. */
export function keySchedule(secretOfKem: Uint8Array, info: Uint8Array): KeySchedule {
  const context = concatBytes(MODE_BASE, PSK_ID_HASH, labeledExtract(INFO_HASH, EMPTY, info));
  const secret = labeledExtract(SECRET, secretOfKem, EMPTY);
  return {
    key: labeledExpand(KEY, secret, context, KEY_BYTES),
    baseNonce: labeledExpand(BASE_NONCE, secret, context, NONCE_BYTES),
    exporterSecret: labeledExpand(EXP, secret, context, HASH_BYTES),
  };
}

/** Section 4.1, ExtractAndExpand. */
function kemSecret(dh: Uint8Array, enc: Uint8Array, recipientPublicKey: Uint8Array): Uint8Array {
  const prk = labeledExtract(EAE_PRK, EMPTY, dh);
  return labeledExpand(SHARED_SECRET, prk, concatBytes(enc, recipientPublicKey), HASH_BYTES);
}

function exportFrom(schedule: KeySchedule, context: Uint8Array, length: number): Uint8Array {
  return labeledExpand(SEC, schedule.exporterSecret, context, length);
}

/** Section 4: `"HPKE-v1" ‖ suite ‖ label`, the prefix of each step's input. Built once per label. */
function labelOf(suite: Uint8Array, label: string): Uint8Array {
  return concatBytes(utf8('HPKE-v1'), suite, utf8(label));
}

/** Section 4. */
function labeledExtract(label: Uint8Array, salt: Uint8Array, input: Uint8Array): Uint8Array {
  return hkdfExtract(salt, label, input);
}

/** Section 4. */
function labeledExpand(label: Uint8Array, key: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  return hkdfExpand(key, length, Uint8Array.of(length >>> 8, length & 0xff), label, info);
}
