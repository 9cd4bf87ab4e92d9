/**
 * Serves routes of better-auth, the sign-in library, under `/console/auth`. {@link AUTH_ROUTES} lists them.
 *
 * A request that passes the checks and attempt limits runs in better-auth's handler. Errors get the coordinator's format.
 */
import { type ApiError, apiError } from '@inference/formats';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AccountNotices } from '../../accounts/account-notices.js';
import { AUTH_PATH, type Auth, COOKIE_PREFIX } from '../../accounts/auth.js';
import { deleteVerifications } from '../../accounts/expired-sessions.js';
import type { KnownBrowsers } from '../../accounts/known-browsers.js';
import { isPasswordOf } from '../../accounts/passwords/is-password-of.js';
import { QUEUE_FULL_MESSAGES, type SignInQueue, SignInQueueFull } from '../../accounts/passwords/sign-in-queue.js';
import { removeIfExcess, TOO_MANY_PASSKEYS } from '../../accounts/second-factors/passkeys.js';
import { isUnavailable } from '../../database/connection/transaction-retry.js';
import { networkOf } from '../../limits/network-address.js';
import { errorFacts, type Log } from '../../log.js';
import { MAX_CONSOLE_BODY_BYTES } from '../plugins/console-api.js';
import { consoleOrigin, hasBearer } from '../plugins/console-origin.js';
import { databaseUnavailable, sendError } from '../plugins/send-error.js';
import { normalizeEmail, type SignInAttempt, type SignInBlock, type SignInClient, type SignInLimits } from '../plugins/sign-in-limits.js';
import { authHeaders, sendAnswer, webRequest } from './auth-messages.js';
import { headerError, inputError, textMember } from './auth-request-checks.js';
import { AUTH_ROUTES, type AuthRoute } from './auth-routes.js';

interface AuthRoutes {
  readonly auth: Auth;
  /** Configured origin of the console, or null. */
  readonly publicOrigin: string | null;
  readonly queue: SignInQueue;
  readonly knownBrowsers: KnownBrowsers;
  readonly notices: AccountNotices;
  readonly canSendMail: boolean;
  readonly log: Log;
}

export function addAuthRoutes(server: FastifyInstance, routes: AuthRoutes): void {
  for (const route of AUTH_ROUTES) {
    server.route({
      method: route.method,
      url: AUTH_PATH + route.path,
      schema: route.schema,
      bodyLimit: MAX_CONSOLE_BODY_BYTES,
      // Run before the body is read.
      onRequest: [
        server.rateLimits.authRoutes,
        (request, reply, done) => {
          const error = headerError(routes, route, request);
          if (error === null) done();
          else sendError(reply.header('cache-control', 'no-store'), error);
        },
      ],
      handler: async (request, reply) => {
        reply.header('cache-control', 'no-store');
        await serve(routes, route, request, reply);
        return reply;
      },
    });
  }
}

async function serve(routes: AuthRoutes, route: AuthRoute, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const refuse = (...error: Parameters<typeof apiError>): void => sendError(reply, apiError(...error));
  const origin = consoleOrigin(request, routes.publicOrigin);
  // Not null: `headerError` has refused such requests.
  if (origin === null) return refuse('cross_origin');
  const error = inputError(route, request, origin);
  if (error !== null) return sendError(reply, error);
  const { signIns } = request.server.rateLimits;
  const client = clientOf(routes, request);
  const disconnected = disconnectSignal(reply);
  // Above the limit, the request gets the usual answer, but no e-mail is sent.
  if (route.mailAnswer !== undefined && client !== null && !(await signIns.admitMail(client))) {
    return sendAnswer(Response.json(route.mailAnswer), reply);
  }
  const session = needsSession(route) ? await routes.auth.api.getSession({ headers: authHeaders(request) }) : null;
  if (route.limitsAttemptsBySession && session !== null) {
    const retryAfter = await signIns.countConfirmation(session.session.id);
    if (retryAfter !== null) return refuse('rate_limit_exceeded', { retryAfter, message: 'Too many attempts. Try again later.' });
  }
  const attempt = await beginAttempt(signIns, route, client, networkOf(request.ip));
  if (attempt !== null && 'by' in attempt)
    return refuse('rate_limit_exceeded', { retryAfter: attempt.retryAfter, message: BLOCKED[attempt.by] });
  const answer = await runInTurn(routes, { route, request, reply, attempt, client, disconnected }, () =>
    handleRequest(routes, route, request, { origin, userId: session?.user.id ?? null }),
  );
  if (!(answer instanceof Response)) return sendError(reply, answer);
  if (attempt !== null) await endAttempt(routes, request, answer, { attempt, client });
  if (answer.ok && session !== null) await notify(routes, route, session.user, origin);
  if (await wasNotStored(routes.auth, answer, textMember(request, 'email'))) {
    await attempt?.refund();
    return sendError(reply, databaseUnavailable());
  }
  await sendAnswer(answer, reply);
}

interface RunningRequest {
  readonly route: AuthRoute;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly attempt: SignInAttempt | null;
  readonly client: SignInClient | null;
  readonly disconnected: AbortSignal;
}

/** Runs `handle` after the delay of the attempt and its turn in the queue, if any. On failure, refunds the attempt and returns an error. */
async function runInTurn(
  { queue, log }: AuthRoutes,
  { route, request, reply, attempt, client, disconnected }: RunningRequest,
  handle: () => Promise<Response>,
): Promise<Response | ApiError> {
  try {
    if (attempt?.isDelayed && client !== null && !(await request.server.rateLimits.signIns.delay(client, disconnected))) {
      await attempt.refund();
      return apiError('rate_limit_exceeded', { retryAfter: 5, message: BLOCKED.email });
    }
    const queueClient = client?.knownBrowserId ?? networkOf(request.ip);
    return await (route.hashesPassword ? queue.run(queueClient, disconnected, handle) : handle());
  } catch (error) {
    await attempt?.refund();
    if (error instanceof SignInQueueFull) return apiError(...QUEUE_FULL[error.scope]);
    // The client has disconnected, so nobody gets this error.
    if (reply.raw.destroyed) return apiError('internal');
    log.error({ request: request.id, error: errorFacts(error) }, 'sign-in failed');
    return isUnavailable(error) ? databaseUnavailable() : apiError('internal');
  }
}

/** `userId` is null without a session. */
async function handleRequest(
  { auth }: AuthRoutes,
  route: AuthRoute,
  request: FastifyRequest,
  { origin, userId }: { readonly origin: string; readonly userId: string | null },
): Promise<Response> {
  if (route.confirmsPassword) {
    if (userId === null) return Response.json({}, { status: 401 });
    const password = textMember(request, 'password') ?? '';
    if (!(await isPasswordOf(auth, userId, password))) return Response.json(WRONG_PASSWORD, { status: 400 });
  }
  const handled = await auth.handler(webRequest(request, origin, route.forwardAs));
  const isOverLimit = handled.ok && route.addsPasskey && userId !== null && (await removeExcessPasskey(auth, handled, userId));
  return isOverLimit ? Response.json({ message: TOO_MANY_PASSKEYS }, { status: 409 }) : handled;
}

/** Refunds an attempt that led to a second step or a session. With a session, also adds the cookie of a known browser. */
async function endAttempt(
  routes: AuthRoutes,
  request: FastifyRequest,
  answer: Response,
  { attempt, client }: { readonly attempt: SignInAttempt; readonly client: SignInClient | null },
): Promise<void> {
  const cookies = answer.ok ? answer.headers.getSetCookie() : [];
  if (cookies.some((cookie) => SECOND_STEP_COOKIE.test(cookie))) return attempt.refund();
  if (!cookies.some((cookie) => SESSION_COOKIE.test(cookie))) return;
  await attempt.refund();
  const signedIn = client ?? clientOf(routes, request, await emailOf(answer));
  if (signedIn === null) return;
  await request.server.rateLimits.signIns.recordSuccess(signedIn);
  answer.headers.append('set-cookie', routes.knownBrowsers.cookieFor(cookiesOf(request), signedIn.email));
}

const SESSION_COOKIE = new RegExp(`${COOKIE_PREFIX}\\.session_token=[^;]`);
const SECOND_STEP_COOKIE = new RegExp(`${COOKIE_PREFIX}\\.two_factor=[^;]`);
const WRONG_PASSWORD = { message: 'Invalid password' };
const BLOCKED: Readonly<Record<SignInBlock['by'], string>> = {
  email: 'Too many attempts with this e-mail address. Try again later.',
  network: 'Too many attempts from this address. Try again later.',
};

function needsSession({ limitsAttemptsBySession, notice }: AuthRoute): boolean {
  return limitsAttemptsBySession === true || notice !== undefined;
}

async function beginAttempt(
  signIns: SignInLimits,
  route: AuthRoute,
  client: SignInClient | null,
  network: string,
): Promise<SignInAttempt | SignInBlock | null> {
  if (route.limitsAttemptsByNetwork) return signIns.beginSecondStep(network);
  return route.limitsAttemptsByEmail && client !== null ? signIns.begin(client) : null;
}

/** Removes the new passkey if concurrent registrations have exceeded the maximum. Returns whether it was removed. */
async function removeExcessPasskey(auth: Auth, answer: Response, userId: string): Promise<boolean> {
  const { id } = (await answer.clone().json()) as { readonly id?: string };
  if (id === undefined) return false;
  const { adapter } = await auth.$context;
  return removeIfExcess(adapter, userId, id);
}

/** Sends the e-mail that informs the user of a change, if any. `user` is the state before the change. */
async function notify(
  routes: AuthRoutes,
  { notice }: AuthRoute,
  user: { readonly id: string; readonly email: string; readonly twoFactorEnabled?: boolean | null | undefined },
  origin: string,
): Promise<void> {
  if (notice === undefined || (notice === 'two_factor_enabled' && user.twoFactorEnabled)) return;
  if (notice === 'two_factor_disabled') await deleteVerifications(routes.auth, user.id);
  routes.notices.send(notice, user.email, origin);
}

async function emailOf(answer: Response): Promise<string | null> {
  const { user } = (await answer.clone().json()) as { readonly user?: { readonly email?: string } };
  return user?.email ?? null;
}

/** Null without an e-mail address. */
function clientOf({ knownBrowsers }: AuthRoutes, request: FastifyRequest, address = textMember(request, 'email')): SignInClient | null {
  const email = normalizeEmail(address ?? '');
  if (email === '') return null;
  return { email, network: networkOf(request.ip), knownBrowserId: knownBrowsers.idOf(cookiesOf(request), email) };
}

/** Cookie header. Ignored in a request with a bearer token, which skips the check against other origins. */
function cookiesOf(request: FastifyRequest): string | undefined {
  return hasBearer(request) ? undefined : request.headers.cookie;
}

const QUEUE_FULL: Readonly<Record<SignInQueueFull['scope'], Parameters<typeof apiError>>> = {
  client: ['rate_limit_exceeded', { retryAfter: 5, message: QUEUE_FULL_MESSAGES.client }],
  all: ['overloaded', { retryAfter: 10, message: QUEUE_FULL_MESSAGES.all }],
};

function disconnectSignal(reply: FastifyReply): AbortSignal {
  const disconnected = new AbortController();
  reply.raw.once('close', () => disconnected.abort(new Error('the client has disconnected')));
  return disconnected.signal;
}

/**
 * Whether the database failed to store a new user. better-auth then answers FAILED_TO_CREATE_USER, but also if a concurrent sign-up took
 * the e-mail address.
 */
async function wasNotStored(auth: Auth, answer: Response, email: string | null): Promise<boolean> {
  if (email === null || answer.status < 400) return false;
  if (!(await answer.clone().text()).includes('"FAILED_TO_CREATE_USER"')) return false;
  const { internalAdapter } = await auth.$context;
  return (await internalAdapter.findUserByEmail(email)) === null;
}
