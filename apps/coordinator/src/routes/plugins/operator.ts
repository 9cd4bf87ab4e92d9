/** Who is operating: the account or the admin key behind a request that the admin guard let in, as the trail names it. */
import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the admin guard: `account:<id>` or `key:<id>`. */
    operator: string | null;
  }
}

export function operatorOf(request: FastifyRequest): string {
  if (request.operator === null) throw new Error('the route is not guarded for operators');
  return request.operator;
}
