/** Who calls what belongs to no format: clients of the Messages format name its version in every request, and no others do. */
import type { FastifyRequest } from 'fastify';

export function isAnthropicClient({ headers }: FastifyRequest): boolean {
  return headers['anthropic-version'] !== undefined;
}
