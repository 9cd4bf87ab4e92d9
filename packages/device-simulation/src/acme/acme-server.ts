/**
 * `AcmeServer` simulates the attestation step of an ACME server (`device-attest-01`), in plain JSON; the rest of ACME is missing.
 *
 * A simulated Mac fetches a challenge token and posts its attestation. The server forwards both to the coordinator, which verifies them.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sendRaw, signedHeaders, type WebhookTarget } from '../management-server/webhook-sender.js';
import { readBody } from '../read-body.js';

export interface AcmeServerOptions {
  /** Coordinator endpoint for challenge answers, and the secret that signs the posts to it. */
  readonly hook: WebhookTarget;
  readonly now?: () => number;
  readonly port?: number;
}

interface Challenge {
  /** From the directory URL; tells the coordinator which enrolment the Mac belongs to. */
  readonly enrolmentToken: string;
  /** Random. The attestation must contain its SHA-256. */
  readonly challengeToken: string;
}

const MAX_BODY_BYTES = 64 * 1024;
/** Maximum challenges without an answer. The oldest are dropped. */
const MAX_OPEN_CHALLENGES = 1000;

export class AcmeServer {
  readonly #server: Server;
  readonly #now: () => number;
  /** Key: random id in the challenge's URL. */
  readonly #openChallenges = new Map<string, Challenge>();
  /** Replaced when the coordinator's address becomes known after the start. */
  hook: WebhookTarget;
  /** Status and body of the coordinator's newest response; null before the first. */
  lastAnswer: { readonly status: number; readonly body: string } | null = null;

  private constructor(options: AcmeServerOptions) {
    this.#now = options.now ?? (() => Date.now());
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

  /** Address for enrolment profiles. The coordinator replaces `{enrolment}` by the enrolment token. */
  get directoryUrl(): string {
    return `${this.#base}/acme/{enrolment}`;
  }

  get #base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #route(request: IncomingMessage): Promise<unknown> {
    const { url = '' } = request;
    const [, enrolmentToken] = /^\/acme\/([^/]+)\/new-order$/.exec(url) ?? [];
    const [, id] = /^\/challenge\/([^/]+)$/.exec(url) ?? [];
    const body = JSON.parse((await readBody(request, MAX_BODY_BYTES)).toString('utf8')) as Record<string, unknown>;
    if (enrolmentToken !== undefined) return this.#openChallenge(enrolmentToken);
    const challenge = id === undefined ? undefined : this.#openChallenges.get(id);
    if (id === undefined || challenge === undefined) throw new RangeError('no such challenge');
    // Only the first answer counts.
    this.#openChallenges.delete(id);
    await this.#forward(challenge, String(body.attObj));
    return { status: 'processing' };
  }

  #openChallenge(enrolmentToken: string): { readonly challenge_url: string; readonly token: string } {
    const id = randomUUID();
    const challengeToken = randomBytes(32).toString('base64url');
    this.#openChallenges.set(id, { enrolmentToken, challengeToken });
    for (const oldest of this.#openChallenges.keys()) {
      if (this.#openChallenges.size <= MAX_OPEN_CHALLENGES) break;
      this.#openChallenges.delete(oldest);
    }
    return { challenge_url: `${this.#base}/challenge/${id}`, token: challengeToken };
  }

  /** Posts a Mac's attestation to the coordinator. */
  async #forward({ enrolmentToken, challengeToken }: Challenge, attestationObject: string): Promise<void> {
    const body = JSON.stringify({
      enrolment: enrolmentToken,
      token: challengeToken,
      att_obj: attestationObject,
      created_at: new Date(this.#now()).toISOString(),
    });
    const { status, answer } = await sendRaw(this.hook, body, signedHeaders(this.hook.secret, body));
    this.lastAnswer = { status, body: answer };
  }
}
