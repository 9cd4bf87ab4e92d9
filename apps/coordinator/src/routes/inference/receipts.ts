/**
 * `GET /v1/receipts/{job_id}`: receipt that a provider signed for an answer, or for the refusal of a sealed request, for the account that
 * sent the request.
 */
import { apiError, documentedErrors } from '@inference/formats';
import { type E2eReceipt, E2eReceiptSchema, fromBase64Url, fromUtf8, type Receipt, ReceiptSchema } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';
import type { NetworkViews } from '../../cluster/views.js';
import type { StoredReceipt } from '../../database/providers/receipt-repository.js';
import type { DeferredReceipts } from '../../images/deferred-receipts.js';
import { accountOf } from '../plugins/api-key-auth.js';
import { jsonResponse, KEY_ERRORS, pathParams } from '../plugins/route-schemas.js';
import { sendError } from '../plugins/send-error.js';

export const SignedReceiptSchema = Type.Object({
  object: Type.Literal('inference.receipt'),
  job_id: Type.String(),
  receipt: Type.String({ description: 'base64url of the canonical JSON of the claims.' }),
  receipt_signature: Type.String({
    description:
      'Base64 of the DER signature over the kind of the receipt, a zero byte, and the receipt. Kind: inference/receipt/v1; for a sealed request, inference/e2e-receipt/v1.',
  }),
  response_hash: Type.String({
    description: 'SHA-256 of the response, in hexadecimal; for a sealed request, of the sealed answer before its final frame.',
  }),
  se_signature: Type.String({ description: 'Base64 of the DER signature over the 64 hexadecimal digits of response_hash.' }),
  claims: Type.Union([ReceiptSchema, E2eReceiptSchema]),
});

const NO_RECEIPT = 'There is no receipt for this request.';
const id = Type.String({ maxLength: 128 });
const text = Type.String({ maxLength: 65_536 });
const QueuedReceiptQuery = Type.Object({ jobId: id, accountId: id });
const QueuedReceiptSchema = Type.Object({
  jobId: id,
  accountId: id,
  receipt: text,
  receiptSignature: text,
  responseSignature: text,
  createdAt: Type.Number(),
});

export function addReceipts(server: FastifyInstance, receipts: DeferredReceipts, views: NetworkViews): void {
  const findUnwritten = views.defineLookup('receipt', { query: QueuedReceiptQuery, part: QueuedReceiptSchema }, ({ jobId, accountId }) =>
    receipts.findUnwritten(jobId, accountId),
  );
  const find = async (jobId: string, accountId: string): Promise<StoredReceipt | null> => {
    const stored = await receipts.find(jobId, accountId);
    if (stored !== null) return stored;
    const unwritten = await findUnwritten({ jobId, accountId });
    if (unwritten !== null) return unwritten.jobId === jobId && unwritten.accountId === accountId ? unwritten : null;
    // Receipts are written to the database in batches. A peer may have written this one between the two lookups.
    return receipts.find(jobId, accountId);
  };
  const schema = {
    summary: 'Signed receipt of a completed request.',
    tags: ['Verification'],
    params: pathParams('job_id'),
    response: {
      200: jsonResponse('SignedReceipt'),
      ...documentedErrors([...KEY_ERRORS, 'not_found'], 'OpenAiError', { not_found: { message: NO_RECEIPT } }),
    },
  };
  server.get<{ Params: { job_id: string } }>(
    '/v1/receipts/:job_id',
    { schema, onRequest: server.guards.account },
    async (request, reply) => {
      const stored = await find(request.params.job_id.toLowerCase(), accountOf(request));
      if (stored === null) {
        sendError(reply, apiError('not_found', { message: NO_RECEIPT }));
        return reply;
      }
      // Receipts are verified before they are stored, so the cast is safe.
      const claims = JSON.parse(fromUtf8(fromBase64Url(stored.receipt))) as Receipt | E2eReceipt;
      return {
        object: 'inference.receipt',
        job_id: stored.jobId,
        receipt: stored.receipt,
        receipt_signature: stored.receiptSignature,
        response_hash: 'response_sha256' in claims ? claims.response_sha256 : claims.sealed_response_sha256,
        se_signature: stored.responseSignature,
        claims,
      };
    },
  );
}
