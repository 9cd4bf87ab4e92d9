/** Verifies and opens a finished end-to-end answer, as coordinator and client do. */
import {
  E2eAnswerMeter,
  type E2ePart,
  type E2eReceipt,
  e2eReceiptMismatch,
  fromBase64,
  type JobCompleted,
  openE2eReceipt,
  parseE2eAnswerHead,
  parseE2eProof,
  type SealedE2eRequest,
} from '@inference/protocol';
import { nodeE2eCrypto, providerIdOf, sha256, sha256Hex, verifyP256, verifyResponseSignature } from '@inference/protocol/crypto';
import { expect } from 'vitest';

export interface OpenedE2eAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly checkpoint: string | undefined;
  readonly body: string;
  /** Number of body parts: frames with content. */
  readonly parts: number;
  readonly receipt: E2eReceipt;
}

interface FinishedJob {
  readonly sealed: SealedE2eRequest;
  /** Index of the candidate that answered. */
  readonly recipient: number;
  /** Body of the request. */
  readonly body: Uint8Array;
  /** The sealed answer. */
  readonly bytes: Uint8Array;
  readonly completed: JobCompleted;
  /** Enclave key of the provider, x963. */
  readonly publicKey: Uint8Array;
}

export function openE2eAnswer({ sealed, recipient, body: request, bytes, completed, publicKey }: FinishedJob): OpenedE2eAnswer {
  const meter = new E2eAnswerMeter(nodeE2eCrypto);
  meter.push(bytes);
  meter.end();
  expect(completed.response_sha256).toBe(meter.sealedSha256);
  expect(verifyResponseSignature(publicKey, completed.response_sha256, fromBase64(completed.signature))).toBe(true);

  const candidate = sealed.candidates[recipient];
  if (candidate === undefined) throw new Error(`there is no candidate ${recipient}`);
  const opener = candidate.answerOpener();
  const { parts } = opener.push(bytes);
  opener.end();
  const [head, ...rest] = parts as [E2ePart, ...E2ePart[]];
  const proof = parseE2eProof((rest.pop() as E2ePart).bytes);
  expect(rest.every(({ kind }) => kind === 'body')).toBe(true);
  const body = Buffer.concat(rest.map((part) => part.bytes));
  expect(proof.response_hash).toBe(sha256Hex(body));
  expect(verifyResponseSignature(publicKey, proof.response_hash, fromBase64(proof.se_signature))).toBe(true);
  expect(proof.receipt).toEqual(completed.receipt);
  const { value: receipt } = openE2eReceipt(proof.receipt, publicKey, verifyP256);
  const { model, endpoint } = sealed.context;
  const mismatch = e2eReceiptMismatch(receipt, {
    job_id: completed.job_id,
    provider_id: providerIdOf(publicKey),
    ...{ model, endpoint },
    context_sha256: sealed.contextSha256,
    sealed_request_sha256: sealed.sealedRequestSha256,
    sealed_response_sha256: meter.sealedSha256 ?? '',
    request_commitment: candidate.commitments.request(sha256(request)),
    response_commitment: candidate.commitments.response(sha256(body)),
    response_bytes: body.length,
  });
  expect(mismatch).toBeNull();
  expect(receipt.response_bytes).toBeLessThanOrEqual(meter.plaintextBytes);
  const { status, content_type: contentType, headers, log_checkpoint: checkpoint } = parseE2eAnswerHead(head.bytes);
  return { status, contentType, headers, checkpoint, body: body.toString('utf8'), parts: rest.length, receipt };
}
