/** `originOf` returns the coordinator's scheme and host for URLs in responses, such as `https://gateway.example`. */
import type { FastifyRequest } from 'fastify';

/** `Host` headers, which clients choose, that are safe to repeat in a response. Same characters as `ImageUrlSchema`. */
const SAFE_HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** `publicOrigin` if configured, else the origin of the request, else the local address of its connection. */
export function originOf(request: FastifyRequest, publicOrigin: string | null): string {
  if (publicOrigin !== null) return publicOrigin;
  if (SAFE_HOST.test(request.host)) return `${request.protocol}://${request.host}`;
  const { localAddress = '127.0.0.1', localPort } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
