/** Converts refusals to HTTP error responses, in the error format of the endpoint. */
import type { Endpoint } from '@inference/protocol';
import type { E2ERefused } from '../refusal.js';

/** Status of local refusals: SDKs do not repeat a request after a 403. */
const REFUSED_STATUS = 403;

/** Errors of the coordinator keep their status and retry headers, so that SDKs may retry. */
export function refusalResponse(endpoint: Endpoint, refusal: E2ERefused, headers: Readonly<Record<string, string>> = {}): Response {
  const isCoordinators = refusal.code === 'coordinator_said';
  const status = refusal.status ?? (isCoordinators ? 502 : REFUSED_STATUS);
  return new Response(errorBody(endpoint, refusal), {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'x-inference-e2e': refusal.code,
      ...(isCoordinators ? headers : { 'x-should-retry': 'false' }),
    },
  });
}

function errorBody(endpoint: Endpoint, { code, message }: E2ERefused): string {
  return endpoint.startsWith('/v1/messages')
    ? JSON.stringify({ type: 'error', error: { type: 'e2e_refused', message, details: { code } } })
    : JSON.stringify({ error: { message, type: 'e2e_refused', param: null, code } });
}
