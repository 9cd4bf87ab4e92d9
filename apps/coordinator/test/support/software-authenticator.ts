/** A WebAuthn authenticator in software: one ES256 key, attestation `none` (Web Authentication Level 3, section 6.5). */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

const USER_PRESENT = 0x01;
const USER_VERIFIED = 0x04;
const HAS_CREDENTIAL = 0x40;

export class SoftwareAuthenticator {
  /** Whether the authenticator checks a PIN or fingerprint. */
  isUserVerified = true;
  readonly #origin: string;
  readonly #rpId: string;
  readonly #id = randomBytes(32);
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;

  constructor(origin: string, rpId: string) {
    this.#origin = origin;
    this.#rpId = rpId;
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#privateKey = privateKey;
    this.#publicKey = publicKey;
  }

  /** Response of `navigator.credentials.create`, as JSON. */
  create(challenge: string): object {
    const length = Buffer.from([0, this.#id.length]);
    const credential = Buffer.concat([Buffer.alloc(16), length, this.#id, this.#coseKey()]);
    const authData = Buffer.concat([this.#header(HAS_CREDENTIAL), credential]);
    // {"fmt": "none", "attStmt": {}, "authData": bytes}
    const head = Buffer.concat([Buffer.from([0xa3, 0x63]), Buffer.from('fmt'), Buffer.from([0x64]), Buffer.from('none')]);
    const statement = Buffer.concat([Buffer.from([0x67]), Buffer.from('attStmt'), Buffer.from([0xa0, 0x68]), Buffer.from('authData')]);
    const object = Buffer.concat([head, statement, Buffer.from([0x58, authData.length]), authData]);
    return this.#response({ clientDataJSON: this.#client('webauthn.create', challenge), attestationObject: base64url(object) });
  }

  /** Response of `navigator.credentials.get`, as JSON. */
  get(challenge: string): object {
    const clientDataJSON = this.#client('webauthn.get', challenge);
    const authenticatorData = this.#header(0);
    const hash = createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest();
    const signature = sign('sha256', Buffer.concat([authenticatorData, hash]), this.#privateKey);
    return this.#response({ clientDataJSON, authenticatorData: base64url(authenticatorData), signature: base64url(signature) });
  }

  /** Hash of the relying party's id, flags, and a counter that stays zero. */
  #header(flags: number): Buffer {
    const all = flags | USER_PRESENT | (this.isUserVerified ? USER_VERIFIED : 0);
    return Buffer.concat([createHash('sha256').update(this.#rpId).digest(), Buffer.from([all, 0, 0, 0, 0])]);
  }

  /** EC2 key of RFC 9053 section 7.1, in CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}. */
  #coseKey(): Buffer {
    const { x = '', y = '' } = this.#publicKey.export({ format: 'jwk' });
    const [px, py] = [Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
    return Buffer.concat([Buffer.from('a5010203262001215820', 'hex'), px, Buffer.from('225820', 'hex'), py]);
  }

  #client(type: string, challenge: string): string {
    return base64url(Buffer.from(JSON.stringify({ type, challenge, origin: this.#origin, crossOrigin: false })));
  }

  #response(response: object): object {
    const id = base64url(this.#id);
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url');
}
