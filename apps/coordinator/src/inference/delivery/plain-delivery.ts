/** Delivers a plain response: holds the body in memory, bounded, and sends it with the signature once verified. */
import type { ApiError, SignedParts, TextFormat } from '@inference/formats';
import { MAX_PLAIN_RESPONSE_BYTES } from '@inference/protocol';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { ClientConnection } from './client-connection.js';
import type { Delivery } from './delivery.js';
import { ignoredHeader, providerHeaders, signatureHeaders } from './response-headers.js';

interface PlainOptions {
  readonly client: ClientConnection;
  readonly format: Pick<TextFormat, 'error'>;
  readonly requestId: string;
  /** Members of the request without effect. */
  readonly ignored: readonly string[];
}

export class PlainDelivery implements Delivery {
  readonly #options: PlainOptions;
  #provider: ProviderConnection | null = null;
  #grant: (bytes: number) => void = () => {};
  #parts: Uint8Array[] = [];
  /** Held for the client. */
  #bytes = 0;
  #delivered = 0;
  /** Nothing is sent before the end, so another provider can always take over. */
  readonly isCommitted = false;
  readonly isStalled = false;

  constructor(options: PlainOptions) {
    this.#options = options;
  }

  get delivered(): number {
    return this.#delivered;
  }

  begin(provider: ProviderConnection, grant: (bytes: number) => void): void {
    this.#provider = provider;
    this.#grant = grant;
  }

  commit(): void {}

  push(bytes: Uint8Array): boolean {
    this.#bytes += bytes.length;
    if (this.#bytes > MAX_PLAIN_RESPONSE_BYTES) return false;
    this.#parts.push(bytes);
    this.#grant(bytes.length);
    return true;
  }

  withdraw(): void {
    this.#parts = [];
    this.#bytes = 0;
  }

  deliver(signed: SignedParts, cost: MicroUsd | null): void {
    const { client, ignored } = this.#options;
    if (client.isDisconnected || this.#provider === null) return;
    const [only, ...more] = this.#parts;
    const body = only !== undefined && more.length === 0 ? only : Buffer.concat(this.#parts);
    client.response.writeHead(200, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': body.length,
      ...providerHeaders(this.#provider),
      ...signatureHeaders(signed),
      ...ignoredHeader(ignored),
      ...(cost === null ? {} : { 'X-Inference-Cost-Micro-Usd': cost }),
    });
    client.end(body);
    this.#delivered = body.length;
  }

  fail(error: ApiError): void {
    this.#parts = [];
    const { client, format, requestId } = this.#options;
    client.answerError(format.error(error, requestId));
  }
}
