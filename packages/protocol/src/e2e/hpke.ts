/**
 * HPKE (RFC 9180) of the end-to-end mode, used by `request.ts`, `answer.ts` and `commitments.ts`. Section numbers refer to RFC 9180.
 *
 * Same suite as `crypto/hpke.ts`, but on {@link E2eCrypto}, which browsers also implement. A context seals only the data key;
 * all other keys are exported from the context.
 */
import { concatBytes, utf8 } from '../bytes.js';
import type { E2eCrypto, X25519KeyPair } from './crypto.js';
import { E2eError } from './error.js';

const EMPTY = new Uint8Array(0);
const HASH_BYTES = 32;
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const ONE = Uint8Array.of(1);

/** Section 4.1: suite of the KEM alone. */
const KEM_SUITE = concatBytes(utf8('KEM'), Uint8Array.of(0x00, 0x20));
/** Section 5.1: suite of KEM, KDF and AEAD. */
const SUITE = concatBytes(utf8('HPKE'), Uint8Array.of(0x00, 0x20, 0x00, 0x01, 0x00, 0x02));
const MODE_BASE = Uint8Array.of(0x00);
// Labels of sections 4.1, 5.1 and 5.3.
const EAE_PRK = labelOf(KEM_SUITE, 'eae_prk');
const SHARED_SECRET = labelOf(KEM_SUITE, 'shared_secret');
const PSK_ID_HASH = labelOf(SUITE, 'psk_id_hash');
const INFO_HASH = labelOf(SUITE, 'info_hash');
const SECRET = labelOf(SUITE, 'secret');
const KEY = labelOf(SUITE, 'key');
const BASE_NONCE = labelOf(SUITE, 'base_nonce');
const EXP = labelOf(SUITE, 'exp');
const SEC = labelOf(SUITE, 'sec');

/** Secrets of one HPKE context (section 5.1). */
export interface HpkeContext {
  readonly key: Uint8Array;
  readonly baseNonce: Uint8Array;
  readonly exporterSecret: Uint8Array;
}

/** Context of a sender, with the encapsulated key for the recipient (32 bytes). */
export interface HpkeSender extends HpkeContext {
  readonly enc: Uint8Array;
}

/** Section 5.1.1, SetupBaseS, for one recipient. Only for tests. Throws E2eError `bad_key`. */
export function setupBaseSender(crypto: E2eCrypto, recipientPublicKey: Uint8Array, info: Uint8Array): HpkeSender {
  return setupBaseSenders(crypto, [recipientPublicKey], info)[0] as HpkeSender;
}

/** SetupBaseS for several recipients with the same `info`, which is hashed only once. Throws E2eError `bad_key`. */
export function setupBaseSenders(crypto: E2eCrypto, recipientPublicKeys: readonly Uint8Array[], info: Uint8Array): readonly HpkeSender[] {
  const scheduleContext = keyScheduleContext(crypto, info);
  return recipientPublicKeys.map((publicKey) => {
    const ephemeral = crypto.generateX25519();
    const enc = ephemeral.publicKey;
    return { enc, ...keySchedule(crypto, kemSecret(crypto, ephemeral, publicKey, enc, publicKey), scheduleContext) };
  });
}

/** Section 5.1.1, SetupBaseR. Throws E2eError `bad_key`. */
export function setupBaseRecipient(crypto: E2eCrypto, recipient: X25519KeyPair, enc: Uint8Array, info: Uint8Array): HpkeContext {
  return keySchedule(crypto, kemSecret(crypto, recipient, enc, enc, recipient.publicKey), keyScheduleContext(crypto, info));
}

/** Section 5.2: seals the only message of a context to ciphertext ‖ tag. A second message would reuse the nonce. */
export function sealOnly(crypto: E2eCrypto, context: HpkeContext, aad: Uint8Array, plaintext: Uint8Array): Uint8Array {
  return crypto.aesGcmSeal(context.key, context.baseNonce, aad, plaintext);
}

/** Section 5.2: opens the message of {@link sealOnly}; null if the tag does not verify. */
export function openOnly(crypto: E2eCrypto, context: HpkeContext, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
  return crypto.aesGcmOpen(context.key, context.baseNonce, aad, sealed);
}

/** Section 5.3. `length`: at most 32 bytes. */
export function exportSecret(crypto: E2eCrypto, context: HpkeContext, exporterContext: Uint8Array, length: number): Uint8Array {
  return labeledExpand(crypto, SEC, context.exporterSecret, exporterContext, length);
}

/** Section 4.1: shared secret of Encap (`peer`: the recipient's key) and Decap (`peer`: `enc`). Throws E2eError `bad_key`. */
export function kemSecret(
  crypto: E2eCrypto,
  own: X25519KeyPair,
  peer: Uint8Array,
  enc: Uint8Array,
  recipientPublicKey: Uint8Array,
): Uint8Array {
  const dh = own.agree(peer);
  if (dh === null) throw new E2eError('bad_key', 'an X25519 public key has small order or is not 32 bytes long');
  const prk = hkdfExtract(crypto, EMPTY, EAE_PRK, dh);
  return labeledExpand(crypto, SHARED_SECRET, prk, concatBytes(enc, recipientPublicKey), HASH_BYTES);
}

/** Section 5.1, `key_schedule_context` in base mode. Depends only on `info`. */
function keyScheduleContext(crypto: E2eCrypto, info: Uint8Array): Uint8Array {
  return concatBytes(MODE_BASE, hkdfExtract(crypto, EMPTY, PSK_ID_HASH), hkdfExtract(crypto, EMPTY, INFO_HASH, info));
}

/** Section 5.1, KeySchedule in base mode. */
function keySchedule(crypto: E2eCrypto, sharedSecret: Uint8Array, keyScheduleContext: Uint8Array): HpkeContext {
  const secret = hkdfExtract(crypto, sharedSecret, SECRET);
  return {
    key: labeledExpand(crypto, KEY, secret, keyScheduleContext, KEY_BYTES),
    baseNonce: labeledExpand(crypto, BASE_NONCE, secret, keyScheduleContext, NONCE_BYTES),
    exporterSecret: labeledExpand(crypto, EXP, secret, keyScheduleContext, HASH_BYTES),
  };
}

/** Section 4: the prefix `"HPKE-v1" ‖ suite ‖ label` of labeled inputs. */
function labelOf(suite: Uint8Array, label: string): Uint8Array {
  return concatBytes(utf8('HPKE-v1'), suite, utf8(label));
}

/** Section 4, LabeledExpand. `label`: from {@link labelOf}. */
function labeledExpand(crypto: E2eCrypto, label: Uint8Array, prk: Uint8Array, info: Uint8Array, length: number): Uint8Array {
  return hkdfExpandBlock(crypto, prk, length, Uint8Array.of(length >>> 8, length & 0xff), label, info);
}

/** HKDF-Extract (RFC 5869 section 2.2). */
export function hkdfExtract(crypto: E2eCrypto, salt: Uint8Array, ...input: readonly Uint8Array[]): Uint8Array {
  return crypto.hmacSha256(salt, ...input);
}

/** HKDF-Expand (RFC 5869 section 2.3) of one block: at most 32 bytes. */
export function hkdfExpandBlock(crypto: E2eCrypto, prk: Uint8Array, length: number, ...info: readonly Uint8Array[]): Uint8Array {
  if (length > HASH_BYTES) throw new RangeError('hkdfExpandBlock computes one block: at most 32 bytes');
  return crypto.hmacSha256(prk, ...info, ONE).slice(0, length);
}
