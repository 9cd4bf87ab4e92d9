/**
 * `inference-verify receipt`: verifies a saved receipt (`GET /v1/receipts/{job_id}`) by the key from the feed or from the caller.
 */
import { fromBase64Url, fromHex, openReceipt, providerIdFromKeyHash, type Receipt, StatementError, toBase64 } from '@inference/protocol';
import { sha256Hex } from '../digest.js';
import { enclaveKeyBytes, verifyP256InBrowser } from '../p256.js';
import { type Command, hashOf, printable, readArguments, UnavailableError, UsageError } from './command.js';
import { readJson } from './download.js';

export const receiptCommand: Command = {
  usage: 'receipt FILE --key SE_PUBLIC_KEY [--weights-sha256 HASH]',
  summary: 'Verify a receipt from GET /v1/receipts/{job_id} by an enclave key (base64, as in the feed), and print what it states.',
  async run(args) {
    const { positional, text } = readArguments(args, { key: { type: 'string' }, 'weights-sha256': { type: 'string' } });
    const weights = hashOf(text('weights-sha256'));
    const key = enclaveKeyBytes(text('key') ?? '');
    if (positional === null || key === null) throw new UsageError('receipt needs a file and --key with the base64 of an enclave key');
    const { receipt, signature } = membersOf(await readJson(positional), positional);
    const claims = open(receipt, signature, key);
    const keySha256 = sha256Hex(key);
    const isSigned =
      claims !== null && claims.se_key_sha256 === keySha256 && claims.provider_id === providerIdFromKeyHash(fromHex(keySha256));
    const verified = isSigned && (weights === null || claims.weights_sha256 === weights);
    const cancelled = claims?.finish_reason === 'cancelled' ? ['The answer was CANCELLED before its end.'] : [];
    const problem = isSigned
      ? 'the receipt does not name these weights'
      : 'this enclave key did not sign the receipt, or the receipt names another provider';
    return {
      verified,
      text: verified
        ? ['verified', ...cancelled, ...JSON.stringify(claims, null, 2).split('\n').map(printable)].join('\n')
        : `NOT VERIFIED: ${problem}.`,
      json: { verified, claims },
    };
  },
};

function membersOf(value: unknown, file: string): { receipt: string; signature: string } {
  const { receipt, receipt_signature: signature } = (value ?? {}) as Record<string, unknown>;
  if (typeof receipt !== 'string' || typeof signature !== 'string') {
    throw new UnavailableError(`${file} has no receipt and receipt_signature`);
  }
  return { receipt, signature };
}

function open(receipt: string, signature: string, key: Uint8Array): Receipt | null {
  try {
    return openReceipt({ payload: toBase64(fromBase64Url(receipt)), signature }, key, verifyP256InBrowser).value;
  } catch (error) {
    // Any decoder error, such as a RangeError for malformed base64, means: not verified.
    if (error instanceof StatementError || error instanceof Error) return null;
    throw error;
  }
}
