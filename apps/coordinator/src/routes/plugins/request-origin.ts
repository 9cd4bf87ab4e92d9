/** Origin of URLs in responses, such as `https://gateway.example`: configured, or that of the request. */
import type { FastifyRequest } from 'fastify';

/** Characters of an image URL (protocol: ImageUrlSchema); a client's `Host` header may contain others. */
const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

export function originOf(request: FastifyRequest, publicOrigin: string | null): string {
  if (publicOrigin !== null) return publicOrigin;
  if (HOST.test(request.host)) return `${request.protocol}://${request.host}`;
  const { localAddress = '127.0.0.1', localPort } = request.socket;
  return `http://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}
