/** `GET /v1/receipts/{job_id}`: the signed receipt of a finished job, for the account that ran it. */
import { apiError } from '@inference/formats';
import { fromBase64Url, fromUtf8, type Receipt } from '@inference/protocol';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import type { ReceiptRepository } from '../../database/providers/receipt-repository.js';
import { accountOf } from '../plugins/api-key-auth.js';
import { sendError } from '../plugins/send-error.js';

export function addReceipts(server: FastifyInstance, guard: onRequestHookHandler, receipts: Pick<ReceiptRepository, 'find'>): void {
  server.get<{ Params: { job_id: string } }>('/v1/receipts/:job_id', { onRequest: guard }, async (request, reply) => {
    const kept = await receipts.find(request.params.job_id.toLowerCase(), accountOf(request));
    if (kept === null) {
      sendError(reply, apiError('not_found', { message: 'There is no receipt of such a job.' }));
      return reply;
    }
    // It was verified before it was kept.
    const claims = JSON.parse(fromUtf8(fromBase64Url(kept.receipt))) as Receipt;
    return {
      object: 'inference.receipt',
      job_id: kept.jobId,
      receipt: kept.receipt,
      receipt_signature: kept.receiptSignature,
      response_hash: claims.response_sha256,
      se_signature: kept.responseSignature,
      claims,
    };
  });
}
