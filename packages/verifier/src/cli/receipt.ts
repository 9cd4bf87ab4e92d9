/** `inference-verify receipt`: verifies a saved receipt (`GET /v1/receipts/{job_id}`) with the enclave key in `--key`. */
import { toPrintable } from '@inference/protocol';
import { enclaveKeyBytes } from '../p256.js';
import { ReceiptError, readSavedReceipt, type SavedReceipt, verifyReceipt } from '../verify-receipt.js';
import { type Command, readArguments, UnavailableError, UsageError, weightsHashOf } from './command.js';
import { readJson } from './download.js';

export const receiptCommand: Command = {
  usage: 'receipt FILE --key SE_PUBLIC_KEY [--weights-sha256 HASH]',
  summary:
    'Verify a receipt from GET /v1/receipts/{job_id}, plain or end-to-end, by an enclave key (base64, as in the feed), and print what it states.',
  async run(args) {
    const { positional, text } = readArguments(args, { key: { type: 'string' }, 'weights-sha256': { type: 'string' } });
    const weights = weightsHashOf(text('weights-sha256'));
    const key = enclaveKeyBytes(text('key') ?? '');
    if (positional === null || key === null) throw new UsageError('receipt needs a file and --key with the base64 of an enclave key');
    const { claims: opened, checks } = verifyReceipt(savedReceipt(await readJson(positional), positional), key);
    const claims = opened?.receipt ?? null;
    const failed = checks.find(({ result }) => result === 'failed');
    const isSigned = claims !== null && failed === undefined;
    const verified = isSigned && (weights === null || claims.weights_sha256 === weights);
    const cancelled = claims?.finish_reason === 'cancelled' ? ['The answer was CANCELLED before its end.'] : [];
    const problem = isSigned ? 'The receipt does not name these weights.' : (failed?.explanation ?? '');
    return {
      verified,
      text: verified
        ? ['verified', ...cancelled, ...JSON.stringify(claims, null, 2).split('\n').map(toPrintable)].join('\n')
        : `NOT VERIFIED: ${problem}`,
      json: { verified, claims },
    };
  },
};

function savedReceipt(value: unknown, file: string): SavedReceipt {
  try {
    return readSavedReceipt(value);
  } catch (error) {
    if (error instanceof ReceiptError) throw new UnavailableError(`${file}: ${error.message}`);
    throw error;
  }
}
