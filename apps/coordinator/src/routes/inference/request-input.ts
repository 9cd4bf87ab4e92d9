/** `requestInput` collects what the parsers of all inference requests need: body, headers and API key. */
import { MAX_REQUEST_BYTES } from '@inference/protocol';
import type { FastifyRequest } from 'fastify';
import { microUsd } from '../../billing/micro-usd.js';
import type { ApiKey } from '../../database/accounts/api-key-repository.js';
import { jobIdOfRequest } from '../../inference/request/job-id.js';
import type { RequestInput } from '../../inference/request/job-request.js';
import type { PrefixHashes } from '../../inference/request/prefix-hashes.js';
import { bytesOf } from '../plugins/request-bodies.js';

interface RequestInputDeps {
  readonly prefixHashes: PrefixHashes;
  readonly now: () => number;
}

export function requestInput(
  request: FastifyRequest,
  key: ApiKey,
  { prefixHashes, now }: RequestInputDeps,
): Omit<RequestInput, 'endpoint'> {
  return {
    jobId: jobIdOfRequest(request.id),
    body: bytesOf(request),
    maxTextBytes: request.server.initialConfig.bodyLimit ?? MAX_REQUEST_BYTES,
    accountId: key.accountId,
    apiKeyId: key.id,
    keySpendLimit: key.spendLimit === null ? null : microUsd(key.spendLimit),
    keyBudget: key.budget,
    nonceHeader: headerValue(request, 'x-inference-nonce'),
    prefixHashes,
    trustHeader: headerValue(request, 'x-inference-trust'),
    signatureHeader: headerValue(request, 'x-inference-signature'),
    keySignatureForm: key.signatureForm,
    // A request for beta features of Anthropic's API may have members that the schema does not know.
    unknownMembers: request.headers['anthropic-beta'] === undefined ? 'refuse' : 'refuse_misspelt',
    providerIdHeader: headerValue(request, 'x-inference-provider-id'),
    now: now(),
  };
}

/** Value of a header; values of a repeated header are joined (RFC 9110 section 5.3). */
export function headerValue(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}
