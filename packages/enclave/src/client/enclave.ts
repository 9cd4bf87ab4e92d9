/** `Enclave`: client and supervisor of a helper process. The key stays in the process or its chip. */
import { fromBase64, type SignedStatement, toBase64 } from '@inference/protocol';
import type { EnclaveError } from '../contract/errors.js';
import type { HelperKind, KeyProtection } from '../contract/replies.js';
import type { Agent, E2eReceiptDraft, ReceiptDraft } from '../contract/requests.js';
import type { OnEnclaveEvent } from './events.js';
import { SupervisedHelper } from './supervised-helper.js';

/** Methods reject with {@link EnclaveError}, and always after `key_changed` or `close`. */
export interface Enclave {
  readonly kind: HelperKind;
  /** P-256 public key in x963 encoding, 65 bytes. */
  readonly publicKey: Uint8Array;
  readonly keyProtection: KeyProtection;
  /** True only for a key in a Secure Enclave. */
  readonly secureEnclave: boolean;
  /** Versions of plain receipts that the helper signs. */
  readonly receiptVersions: readonly number[];
  /** Versions of end-to-end receipts that the helper signs; empty: none. */
  readonly e2eReceiptVersions: readonly number[];
  /** Signed statement of the machine and its current posture. */
  attest(agent: Agent, signal?: AbortSignal): Promise<SignedStatement>;
  /** Signs a challenge (base64 of 32 bytes) of this session, with the current posture. */
  answerChallenge(nonce: string, sessionId: string, signal?: AbortSignal): Promise<SignedStatement>;
  /** Signs a sealing key, which clients encrypt requests to. Valid for at most 60 minutes from about now. */
  signKey(request: SealingKeyRequest, signal?: AbortSignal): Promise<SignedStatement>;
  /** Signs the response hash (base64 DER signature over its 64 hex digits) and the receipt. */
  signResponse(receipt: ReceiptDraft, signal?: AbortSignal): Promise<{ signature: string; receipt: SignedStatement }>;
  /** Signs the hashes of plaintext and sealed bytes of an end-to-end response, and its receipt. */
  signE2eResponse(responseSha256: string, receipt: E2eReceiptDraft, signal?: AbortSignal): Promise<SignedE2eResponse>;
  /** Ends the helper; resolves when its process has exited. */
  close(): Promise<void>;
}

/** Signatures are base64 strict-DER. */
export interface SignedE2eResponse {
  /** Signature over the 64 hex digits of the plaintext's hash. */
  readonly signature: string;
  /** Signature over the 64 hex digits of the receipt's `sealed_response_sha256`. */
  readonly sealedSignature: string;
  readonly receipt: SignedStatement;
}

export interface SealingKeyRequest {
  /** 32 raw bytes. */
  readonly x25519PublicKey: Uint8Array;
  /** Start of validity, in milliseconds since 1970. */
  readonly notBefore: number;
  /** End of validity, in milliseconds since 1970. */
  readonly notAfter: number;
  /** SHA-256 of the attestation statement's payload, hexadecimal. */
  readonly attestationSha256: string;
}

export interface OpenEnclaveOptions {
  /** Program and arguments of the helper, see `simulatedHelperCommand` and `nativeHelperCommand`. */
  readonly command: readonly string[];
  /** Deadline in milliseconds of each request, and of a restart of the helper. */
  readonly timeoutMs?: number;
  readonly onEvent?: OnEnclaveEvent;
}

const DEFAULT_TIMEOUT_MS = 10_000;

/** Starts a helper and performs the handshake. Throws {@link EnclaveError}. */
export async function openEnclave(options: OpenEnclaveOptions): Promise<Enclave> {
  const { helper, identity } = await SupervisedHelper.open({
    command: options.command,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    onEvent: options.onEvent ?? (() => {}),
  });
  return {
    kind: identity.kind,
    publicKey: fromBase64(identity.publicKey),
    keyProtection: identity.keyProtection,
    secureEnclave: identity.secureEnclave,
    receiptVersions: identity.receiptVersions,
    e2eReceiptVersions: identity.e2eReceiptVersions,
    attest: async (agent, signal) => statement(await helper.request('attest', { agent }, signal)),
    answerChallenge: async (nonce, sessionId, signal) =>
      statement(await helper.request('answer_challenge', { nonce, session_id: sessionId }, signal)),
    signKey: async (request, signal) =>
      statement(
        await helper.request(
          'sign_key',
          {
            x25519_public_key: toBase64(request.x25519PublicKey),
            not_before: request.notBefore,
            not_after: request.notAfter,
            attestation_sha256: request.attestationSha256,
          },
          signal,
        ),
      ),
    signResponse: async (receipt, signal) => {
      const result = await helper.request('sign_response', { receipt }, signal);
      return { signature: result.signature, receipt: statement(result.receipt) };
    },
    signE2eResponse: async (responseSha256, receipt, signal) => {
      const result = await helper.request('sign_e2e_response', { response_sha256: responseSha256, receipt }, signal);
      return { signature: result.signature, sealedSignature: result.sealed_signature, receipt: statement(result.receipt) };
    },
    close: () => helper.close(),
  };
}

/** The signed statement of a reply, without the reply's other members. */
function statement(result: SignedStatement): SignedStatement {
  return { payload: result.payload, signature: result.signature };
}
