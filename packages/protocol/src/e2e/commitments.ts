/**
 * Keyed hashes (HMAC) of request, response and images in an end-to-end receipt.
 *
 * Client and provider derive the key from the HPKE context. With plain hashes, the coordinator could test guesses of the content.
 */
import { toHex, utf8 } from '../bytes.js';
import type { E2eCrypto } from './crypto.js';
import { exportSecret, type HpkeContext } from './hpke.js';

const EXPORT_LABEL = utf8('inference/e2e/v1 receipt');
const REQUEST = utf8('request\0');
const RESPONSE = utf8('response\0');
const IMAGE = utf8('image\0');

export class E2eCommitments {
  readonly #crypto: E2eCrypto;
  readonly #context: HpkeContext;
  #exported: Uint8Array | null = null;

  constructor(crypto: E2eCrypto, context: HpkeContext) {
    this.#crypto = crypto;
    this.#context = context;
  }

  /** Derived at first use: candidates that do not answer never need the key. */
  get #key(): Uint8Array {
    this.#exported ??= exportSecret(this.#crypto, this.#context, EXPORT_LABEL, 32);
    return this.#exported;
  }

  /** Lowercase hex of HMAC(key, "request" 00 ‖ SHA-256 of the request body). `sha256`: 32 bytes. */
  request(sha256: Uint8Array): string {
    return toHex(this.#crypto.hmacSha256(this.#key, REQUEST, sha256));
  }

  /** Lowercase hex of HMAC(key, "response" 00 ‖ SHA-256 of the joined body parts). `sha256`: 32 bytes. */
  response(sha256: Uint8Array): string {
    return toHex(this.#crypto.hmacSha256(this.#key, RESPONSE, sha256));
  }

  /** Lowercase hex of HMAC(key, "image" 00 ‖ index u8 ‖ SHA-256 of the image). `sha256`: 32 bytes. */
  image(index: number, sha256: Uint8Array): string {
    return toHex(this.#crypto.hmacSha256(this.#key, IMAGE, Uint8Array.of(index), sha256));
  }
}
