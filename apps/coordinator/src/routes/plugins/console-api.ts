/** `ConsoleApi` registers routes under `/console/v1`, with a session, protection against cross-site requests, and validated bodies. */
import { apiError, type OrganisationRole, readJsonBody, schemaCheck } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema, onRequestHookHandler } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { SessionReader, SignedIn } from '../../accounts/sessions.js';
import type { OrganisationLog } from '../../database/accounts/organisation-log.js';
import type { OrganisationRepository } from '../../database/accounts/organisation-repository.js';
import { actionOf } from './console-access-policy.js';
import { consoleOrigin, hasBearer, isCrossOrigin, isJson } from './console-origin.js';
import { type Download, downloadSchema, sendDownload } from './downloads.js';
import { bytesOf } from './request-bodies.js';
import { pathParams } from './route-schemas.js';
import { sendError } from './send-error.js';

export const MAX_CONSOLE_BODY_BYTES = 64 * 1024;

export interface ConsoleAccess {
  readonly sessions: SessionReader;
  readonly organisations: OrganisationRepository;
  readonly organisationLog: OrganisationLog;
  /** Called if an action could not be written to the log of its organisation. */
  readonly onLogError: (error: unknown) => void;
  /** Configured origin of the console. If null, the console works only under loopback addresses; see `consoleOrigin`. */
  readonly publicOrigin: string | null;
}

export interface ConsoleCall<Body> {
  /** The person's session. `caller.account` is the account that the request acts for: the person's own, or an organisation. */
  readonly caller: SignedIn;
  /** Id of the signed-in person. */
  readonly userId: string;
  /** Set if the request acts for an organisation. */
  readonly organisation: ActingMember | null;
  readonly body: Body;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly params: Readonly<Record<string, string>>;
  /** Origin of the console. */
  readonly origin: string;
  /** IP address of the client. */
  readonly address: string;
}

interface ConsoleOperation<Answer extends TSchema, Body extends TSchema> {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  readonly path: string;
  readonly body?: Body;
  /** Schema of a successful response. Used for the handler's type and the documentation, but not to check responses. */
  readonly response: Answer;
  readonly status?: number;
  /** Subject of the action in the organisation's log. Default: the last path parameter. */
  readonly subject?: (answer: Static<Answer>) => string;
}

export class ConsoleApi {
  readonly #server: FastifyInstance;
  /** Hooks of every route, which run before the body is read. */
  readonly #guards: onRequestHookHandler[];

  constructor(server: FastifyInstance) {
    this.#server = server;
    this.#guards = [server.rateLimits.publicRoutes, server.guards.session];
  }

  add<Answer extends TSchema, Body extends TSchema = TSchema>(
    operation: ConsoleOperation<Answer, Body>,
    handle: (call: ConsoleCall<Static<Body>>) => Promise<Static<Answer>>,
  ): void {
    const check = operation.body === undefined ? null : schemaCheck(operation.body);
    const schema: FastifySchema = {
      params: pathParams(...(operation.path.match(/(?<=:)\w+/g) ?? [])),
      ...(operation.body === undefined ? {} : { body: operation.body }),
      response: { [operation.status ?? 200]: operation.response },
    };
    this.#server.route({
      method: operation.method,
      url: `/console/v1${operation.path}`,
      schema,
      bodyLimit: MAX_CONSOLE_BODY_BYTES,
      onRequest: this.#guards,
      handler: async (request, reply) => {
        const consoleCaller = callerOf(request);
        const { organisation, userId } = consoleCaller;
        // Fastify validates nothing (`useDocumentationSchemas`), and `requestBodies` passes the body as bytes.
        const body = (check === null ? undefined : check(readJsonBody(bytesOf(request)))) as Static<Body>;
        const answer = await handle({
          ...consoleCaller,
          address: request.ip,
          body,
          query: request.query as Record<string, string>,
          params: request.params as Record<string, string>,
        });
        const action = actionOf(request);
        if (organisation !== null && action !== null) {
          const subject = operation.subject?.(answer) ?? Object.values(request.params as Record<string, string>).at(-1) ?? null;
          await this.#server.recordAct({ organisationId: organisation.id, actorId: userId, action, subject });
        }
        reply.header('cache-control', 'no-store').code(operation.status ?? 200);
        return answer;
      },
    });
  }

  /** Registers a GET route that streams a file. If `make` rejects, the client gets an error. A later error truncates the file. */
  addDownload(
    file: { readonly path: string; readonly types: readonly string[] },
    make: (call: ConsoleCall<undefined>) => Download | Promise<Download>,
  ): void {
    const schema = downloadSchema(file.types);
    this.#server.get(`/console/v1${file.path}`, { schema, onRequest: this.#guards }, async (request, reply) => {
      const consoleCaller = callerOf(request);
      const { query, params } = request as { query: Record<string, string>; params: Record<string, string> };
      return sendDownload(reply, await make({ ...consoleCaller, address: request.ip, body: undefined, query, params }));
    });
  }
}

/** Organisation that the signed-in person acts for, and the person's role there. */
export interface ActingMember {
  readonly id: string;
  readonly role: OrganisationRole;
}

export interface ConsoleCaller {
  readonly caller: SignedIn;
  readonly userId: string;
  readonly organisation: ActingMember | null;
  /** Origin of the console. */
  readonly origin: string;
}

function callerOf(request: FastifyRequest): ConsoleCaller {
  if (request.consoleCaller === null) throw new Error('the route is not guarded by a session');
  return request.consoleCaller;
}

/**
 * Checks the origin, content type and session of a request, and that the person's account is not suspended.
 *
 * Returns null after sending an error. The result acts for the person: `actForAccount` (`guards.ts`) sets `organisation` later.
 */
export async function authenticateSession(
  access: ConsoleAccess,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<ConsoleCaller | null> {
  const refuse = (...error: Parameters<typeof apiError>): null => {
    sendError(reply, apiError(...error));
    return null;
  };
  const origin = consoleOrigin(request, access.publicOrigin);
  if (origin === null) return refuse('cross_origin', { message: 'The console is not served under this name. Set PUBLIC_URL.' });
  if (isMutation(request)) {
    // With a bearer token, `SessionReader` ignores cookies, so the origin does not matter.
    if (!hasBearer(request) && isCrossOrigin(request, origin)) return refuse('cross_origin');
    if (request.method !== 'DELETE' && !isJson(request)) return refuse('not_json');
  }
  const { signedIn, setCookies } = await access.sessions.find(headersOf(request));
  if (setCookies.length > 0) reply.header('set-cookie', setCookies);
  if (signedIn === null) return refuse('not_signed_in');
  if (signedIn.account.suspendedAt !== null) return refuse('account_suspended');
  return { caller: signedIn, userId: signedIn.account.id, organisation: null, origin };
}

export function isMutation(request: FastifyRequest): boolean {
  return request.method !== 'GET' && request.method !== 'HEAD';
}

/** Headers as a Fetch API object, without pseudo-headers of HTTP/2. */
export function headersOf(request: FastifyRequest): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value].flat()) if (one !== undefined && !name.startsWith(':')) headers.append(name, one);
  }
  return headers;
}
