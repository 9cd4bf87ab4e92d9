/** `tokenCountAdmission` applies the limits on free token counting: of this coordinator and, in a cluster, of all coordinators. */
import { apiError } from '@inference/formats';
import type { FastifyReply } from 'fastify';
import type { ApiKey } from '../../database/accounts/api-key-repository.js';
import type { AdmittedCount, CountTokensLimit } from '../../inference/request/count-tokens-limit.js';
import type { NetworkLimit } from '../../limits/network-limits.js';
import { sendError } from '../plugins/send-error.js';

export interface TokenCountingLimits {
  readonly countTokensLimit: CountTokensLimit;
  /** Limit of the whole cluster, if any. */
  readonly countTokensNetworkLimit: NetworkLimit | null;
}

const LIMIT_REACHED =
  'Token counting is free, so concurrent requests and bytes per minute are limited per account. Pixels of images count as bytes. Try again later.';

/** Returns a function that charges bytes of the request. If a limit is reached, the function sends status 429 and resolves to false. */
export function tokenCountAdmission(
  reply: FastifyReply,
  { accountId }: Pick<ApiKey, 'accountId'>,
  { countTokensLimit, countTokensNetworkLimit }: TokenCountingLimits,
): (bytes: number) => Promise<boolean> {
  let admitted: AdmittedCount | null = null;
  let countedBytes = 0;
  const refuse = (retryAfter: number): false => {
    sendError(reply, apiError('rate_limit_exceeded', { message: LIMIT_REACHED, retryAfter }));
    return false;
  };
  return async (bytes) => {
    if (admitted === null) {
      const admission = countTokensLimit.admit(accountId, bytes);
      if (admission.kind === 'refused') return refuse(admission.retryAfterSeconds);
      admitted = admission;
      reply.raw.once('close', admitted.release);
    } else {
      const retryAfterSeconds = admitted.add(bytes);
      if (retryAfterSeconds !== null) return refuse(retryAfterSeconds);
    }
    const cost = countTokensLimit.costOf(countedBytes + bytes) - countTokensLimit.costOf(countedBytes);
    countedBytes += bytes;
    const permit = cost === 0 ? undefined : await countTokensNetworkLimit?.take(accountId, cost);
    if (permit?.isAdmitted !== false) return true;
    admitted.cancel();
    return refuse(Math.max(1, Math.ceil(permit.resetMs / 1000)));
  };
}
