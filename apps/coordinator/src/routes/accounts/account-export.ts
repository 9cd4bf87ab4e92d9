/**
 * `/console/v1/account/export`: download of the data that is stored about the account, as JSON.
 *
 * POST checks the password and returns a link with a grant: a signed token, valid for minutes. GET with the grant downloads the file.
 */
import { ConsoleAccountExportSchema, RequestAccountExportSchema, RequestError } from '@inference/formats';
import type { FastifyInstance } from 'fastify';
import type { Auth } from '../../accounts/auth.js';
import type { ExportGrants } from '../../accounts/export-grants.js';
import { isPasswordOf } from '../../accounts/passwords/is-password-of.js';
import { QUEUE_FULL_MESSAGES, type SignInQueue, SignInQueueFull } from '../../accounts/passwords/sign-in-queue.js';
import type { AttemptCounters } from '../../limits/attempt-counters.js';
import { networkOf } from '../../limits/network-address.js';
import { HOUR_MS } from '../../time-units.js';
import { isoTime } from '../parameters/times.js';
import type { ConsoleApi, ConsoleCall } from '../plugins/console-api.js';
import { JSON_TYPE } from '../plugins/downloads.js';

export type ExportOf = (accountId: string) => AsyncIterable<string>;

interface AccountExportRoutes {
  readonly auth: Auth;
  readonly grants: ExportGrants;
  readonly queue: SignInQueue;
  readonly attempts: AttemptCounters;
  readonly exportOf: ExportOf;
}

const PATH = '/account/export';
/** Per account. A download reads all usage of the account. */
const MAX_DOWNLOADS_PER_HOUR = 10;
/** Maximum wait in the queue for password hashing, which sign-ins also use. */
const MAX_PASSWORD_WAIT_MS = 30_000;

export function addAccountExport(server: FastifyInstance, api: ConsoleApi, routes: AccountExportRoutes): void {
  const { auth, grants, queue, attempts, exportOf } = routes;
  const downloadCounter = attempts.counter('exports of an account', { maxAttempts: MAX_DOWNLOADS_PER_HOUR, windowMs: HOUR_MS });
  const { signIns } = server.rateLimits;

  const grantRoute = {
    method: 'POST',
    path: PATH,
    body: RequestAccountExportSchema,
    response: ConsoleAccountExportSchema,
    status: 201,
  } as const;
  api.add(grantRoute, async (call) => {
    if ((await signIns.countConfirmation(call.caller.sessionId)) !== null) throw rateLimitError('Too many attempts. Try again later.');
    const isCorrect = await convertQueueError(() =>
      queue.run(networkOf(call.address), AbortSignal.timeout(MAX_PASSWORD_WAIT_MS), () =>
        isPasswordOf(auth, call.userId, call.body.password),
      ),
    );
    if (!isCorrect) throw new RequestError('invalid_request', 'password', 'The password is wrong.');
    const { grant, expiresAt } = grants.create(scopeOf(call));
    const query = new URLSearchParams({ grant, ...(call.organisation === null ? {} : { account_id: call.organisation.id }) });
    return { path: `/console/v1${PATH}?${query}`, expires_at: isoTime(expiresAt) };
  });

  api.addDownload({ path: PATH, types: [JSON_TYPE] }, async (call) => {
    if (!grants.isValid(scopeOf(call), call.query.grant ?? '')) {
      throw new RequestError('invalid_request', 'grant', 'This link has expired or belongs to another session. Enter your password again.');
    }
    const { id } = call.caller.account;
    if ((await downloadCounter.count(id)) !== null) {
      throw rateLimitError(`At most ${MAX_DOWNLOADS_PER_HOUR} downloads per hour. Try again later.`);
    }
    return { name: 'account-data.json', type: JSON_TYPE, parts: exportOf(id) };
  });
}

function scopeOf({ caller }: ConsoleCall<unknown>) {
  return { sessionId: caller.sessionId, accountId: caller.account.id };
}

/** Converts the errors of a full sign-in queue, and of a wait beyond {@link MAX_PASSWORD_WAIT_MS}, into rate limit errors. */
async function convertQueueError<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SignInQueueFull) throw rateLimitError(QUEUE_FULL_MESSAGES[error.scope]);
    if (error instanceof DOMException && error.name === 'TimeoutError') throw rateLimitError(QUEUE_FULL_MESSAGES.all);
    throw error;
  }
}

function rateLimitError(message: string): RequestError {
  return new RequestError('rate_limit_exceeded', null, message);
}
