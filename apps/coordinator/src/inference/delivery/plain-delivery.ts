/** `PlainDelivery` delivers a response that is not a stream: buffers the body up to a maximum size, and sends it after verification. */
import type { ApiError, HttpError, SignedParts } from '@inference/formats';
import type { MicroUsd } from '../../billing/micro-usd.js';
import type { ProviderConnection } from '../../providers/provider-connection.js';
import type { Route } from '../request/job-routing.js';
import type { ClientConnection } from './client-connection.js';
import type { Delivery } from './delivery.js';

interface PlainOptions {
  readonly client: ClientConnection;
  readonly errorResponse: (error: ApiError) => HttpError;
  /** Headers of the response, other than length and cost. */
  readonly headers: (provider: ProviderConnection, signed: SignedParts, route: Route) => Readonly<Record<string, string>>;
  /** Maximum size of the body. A larger body is the provider's fault. */
  readonly maxBytes: number;
}

export class PlainDelivery implements Delivery {
  readonly #options: PlainOptions;
  #provider: ProviderConnection | null = null;
  #route: Route | null = null;
  #grant: (bytes: number) => void = () => {};
  #parts: Uint8Array[] = [];
  /** Bytes received from the current provider. */
  #bytes = 0;
  #delivered = 0;
  /** No byte is sent before the end, so another provider can always take over. */
  readonly isCommitted = false;
  readonly isStalled = false;

  constructor(options: PlainOptions) {
    this.#options = options;
  }

  get delivered(): number {
    return this.#delivered;
  }

  begin(provider: ProviderConnection, grant: (bytes: number) => void, route: Route): void {
    this.#provider = provider;
    this.#route = route;
    this.#grant = grant;
  }

  commit(): void {}

  push(bytes: Uint8Array): boolean {
    this.#bytes += bytes.length;
    if (this.#bytes > this.#options.maxBytes) return false;
    this.#parts.push(bytes);
    this.#grant(bytes.length);
    return true;
  }

  withdraw(): void {
    this.#parts = [];
    this.#bytes = 0;
  }

  deliver(signed: SignedParts, cost: MicroUsd | null): void {
    const { client, headers } = this.#options;
    if (client.isDisconnected || this.#provider === null || this.#route === null) return;
    const [only, ...more] = this.#parts;
    const body = only !== undefined && more.length === 0 ? only : Buffer.concat(this.#parts);
    client.writeHead(200, {
      'Content-Length': body.length,
      ...(cost === null ? {} : { 'X-Inference-Cost-Micro-Usd': cost }),
      ...headers(this.#provider, signed, this.#route),
    });
    client.end(body);
    this.#delivered = body.length;
  }

  fail(error: ApiError): void {
    this.#parts = [];
    const { client, errorResponse } = this.#options;
    client.answerError(errorResponse(error));
  }
}
