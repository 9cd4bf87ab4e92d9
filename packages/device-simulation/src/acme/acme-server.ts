/** `AcmeServer` simulates only the `device-attest-01` challenge of ACME. The coordinator verifies the answers. */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sendRaw, signedHeaders, type WebhookTarget } from '../management-server/webhook-sender.js';
import { readBody } from '../read-body.js';

export interface AcmeServerOptions {
  /** Coordinator endpoint for challenge results, and the secret that signs the results. */
  readonly hook: WebhookTarget;
  readonly now?: () => number;
  readonly port?: number;
}

interface Order {
  readonly enrolment: string;
  readonly token: string;
}

const MAX_BODY_BYTES = 64 * 1024;
/** Maximum open orders. The oldest are dropped. */
const MAX_ORDERS = 1000;

export class AcmeServer {
  readonly #server: Server;
  readonly #orders = new Map<string, Order>();
  readonly #options: AcmeServerOptions;
  hook: WebhookTarget;
  /** Status and body of the coordinator's newest answer. */
  lastAnswer: { readonly status: number; readonly body: string } | null = null;

  private constructor(options: AcmeServerOptions) {
    this.#options = options;
    this.hook = options.hook;
    this.#server = createServer((request, response) => {
      this.#route(request).then(
        (answer) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)),
        () => response.writeHead(400).end('{}'),
      );
    });
  }

  static async start(options: AcmeServerOptions): Promise<AcmeServer> {
    const server = new AcmeServer(options);
    server.#server.listen(options.port ?? 0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** Address for profiles. The coordinator replaces `{enrolment}` by the enrolment's token. */
  get directoryUrl(): string {
    return `${this.#base}/acme/{enrolment}`;
  }

  get #base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Posts a device's challenge answer to the coordinator. */
  async report(result: { readonly enrolment: string; readonly token: string; readonly attObj: string }): Promise<void> {
    const { now = Date.now } = this.#options;
    const body = JSON.stringify({
      ...{ enrolment: result.enrolment, token: result.token, att_obj: result.attObj },
      created_at: new Date(now()).toISOString(),
    });
    const { status, answer } = await sendRaw(this.hook, body, signedHeaders(this.hook.secret, body));
    this.lastAnswer = { status, body: answer };
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #route(request: IncomingMessage): Promise<unknown> {
    const { url = '' } = request;
    const [, enrolment] = /^\/acme\/([^/]+)\/new-order$/.exec(url) ?? [];
    const [, id] = /^\/challenge\/([^/]+)$/.exec(url) ?? [];
    const body = JSON.parse((await readBody(request, MAX_BODY_BYTES)).toString('utf8')) as Record<string, unknown>;
    if (enrolment !== undefined) {
      const order = { enrolment, token: randomBytes(32).toString('base64url') };
      const name = randomUUID();
      this.#orders.set(name, order);
      for (const oldest of this.#orders.keys()) {
        if (this.#orders.size <= MAX_ORDERS) break;
        this.#orders.delete(oldest);
      }
      return { challenge_url: `${this.#base}/challenge/${name}`, token: order.token };
    }
    const order = id === undefined ? undefined : this.#orders.get(id);
    if (id === undefined || order === undefined) throw new RangeError('no such order');
    // A challenge is answered once.
    this.#orders.delete(id);
    await this.report({ ...order, attObj: String(body.attObj) });
    return { status: 'processing' };
  }
}
