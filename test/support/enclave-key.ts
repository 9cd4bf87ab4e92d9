/** Software P-256 key in the role of an enclave key, for scripted providers. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import {
  canonicalJsonBytes,
  type JsonValue,
  type SignedStatement,
  type StatementKind,
  statementBytes,
  toBase64,
  utf8,
} from '@inference/protocol';

export class EnclaveKey {
  readonly #privateKey: KeyObject;
  /** 65-byte x963 point. */
  readonly publicKey: Uint8Array;

  constructor() {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    this.#privateKey = privateKey;
    this.publicKey = new Uint8Array(publicKey.export({ format: 'der', type: 'spki' }).subarray(-65));
  }

  statement(kind: StatementKind, value: JsonValue): SignedStatement {
    const payload = canonicalJsonBytes(value);
    return { payload: toBase64(payload), signature: toBase64(sign('sha256', statementBytes(kind, payload), this.#privateKey)) };
  }

  /** Strict-DER signature over arbitrary bytes. Real enclave helpers sign only statements. */
  sign(bytes: Uint8Array): Uint8Array {
    return new Uint8Array(sign('sha256', bytes, this.#privateKey));
  }

  signResponse(responseSha256: string): string {
    return toBase64(sign('sha256', utf8(responseSha256), this.#privateKey));
  }
}
