/**
 * Client of the device authorization grant (RFC 8628), by which an owner gives this machine a token.
 *
 * Requests a code that the owner approves in a browser, polls for the decision, and revokes tokens.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { CoordinatorError, type CoordinatorRequest, errorSentence, type JsonAnswer, requestCoordinator } from './coordinator-http.js';

export const CLIENT_ID = 'inference-provider';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

const StartedSchema = Type.Object({
  device_code: Type.String({ minLength: 1, maxLength: 512 }),
  user_code: Type.String({ pattern: '^[A-Za-z0-9-]{4,32}$' }),
  verification_uri: Type.String({ pattern: '^https?://[\\x21-\\x7e]+$', maxLength: 2048 }),
  verification_uri_complete: Type.Optional(Type.String({ pattern: '^https?://[\\x21-\\x7e]+$', maxLength: 2048 })),
  expires_in: Type.Number({ exclusiveMinimum: 0, maximum: 86_400 }),
  /** Seconds; default five (section 3.2). */
  interval: Type.Optional(Type.Number({ minimum: 0, maximum: 600 })),
});
const GrantedSchema = Type.Object({ access_token: Type.String({ pattern: '^[A-Za-z0-9._~-]{16,256}$' }) });
const started = lazyValidator(StartedSchema);
const granted = lazyValidator(GrantedSchema);

export interface DeviceCode {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly verificationUri: string;
  readonly verificationUriComplete: string;
  readonly expiresInMs: number;
  readonly intervalMs: number;
}

export type GrantOutcome =
  | { readonly kind: 'granted'; readonly token: string }
  | { readonly kind: 'denied' | 'expired' }
  /** Another error, such as an unknown device code; polling ends. */
  | { readonly kind: 'refused'; readonly message: string };

export interface Machine {
  readonly machineName: string;
  readonly chipName: string | null;
}

const DEFAULT_INTERVAL_S = 5;
/** RFC 8628 section 3.5. */
const SLOW_DOWN_MS = 5000;
/** After failed polls. */
const MAX_POLL_INTERVAL_MS = 30_000;

/** Throws {@link CoordinatorError}, or the signal's reason. */
export async function requestCode(coordinator: string, machine: Machine, signal: AbortSignal): Promise<DeviceCode> {
  const answer = await requestCoordinator(coordinator, '/oauth/device_authorization', {
    form: {
      client_id: CLIENT_ID,
      machine_name: machine.machineName,
      ...(machine.chipName === null ? {} : { chip_name: machine.chipName }),
    },
    signal,
  });
  const { status, value } = answer;
  if (status === 404) throw new CoordinatorError('refused', `the coordinator ${coordinator} does not support linking machines`, status);
  if (status !== 200) throw new CoordinatorError(status >= 500 ? 'unreachable' : 'refused', errorSentence(answer), status);
  if (!started().Check(value)) throw new CoordinatorError('invalid_answer', `the answer of ${coordinator} was not understood`, status);
  return {
    deviceCode: value.device_code,
    userCode: value.user_code,
    verificationUri: value.verification_uri,
    verificationUriComplete: value.verification_uri_complete ?? value.verification_uri,
    expiresInMs: value.expires_in * 1000,
    intervalMs: (value.interval ?? DEFAULT_INTERVAL_S) * 1000,
  };
}

/** Replaced by tests. */
export interface Clock {
  readonly now: () => number;
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

interface AwaitGrantOptions {
  readonly signal: AbortSignal;
  readonly onPollError: (sentence: string | null) => void;
  readonly clock?: Clock;
}

const CLOCK: Clock = {
  now: () => performance.now(),
  pause: (ms, signal) => delay(ms, undefined, { signal }).catch(() => signal.throwIfAborted()),
};

/**
 * Polls until the owner decides, the code expires, or the coordinator refuses. Rejects only with the signal's reason.
 *
 * Calls `onPollError` after each poll: with a sentence if the poll failed, otherwise with null.
 */
export async function awaitGrant(
  coordinator: string,
  code: DeviceCode,
  { signal, onPollError, clock = CLOCK }: AwaitGrantOptions,
): Promise<GrantOutcome> {
  const end = clock.now() + code.expiresInMs;
  let interval = code.intervalMs;
  let pause = interval;
  for (;;) {
    const left = end - clock.now();
    if (left <= 0) return { kind: 'expired' };
    await clock.pause(Math.min(pause, left), signal);
    const result = await pollOnce(coordinator, code.deviceCode, signal);
    onPollError(result.kind === 'failed' ? result.message : null);
    switch (result.kind) {
      case 'pending':
        pause = interval;
        break;
      case 'slow_down':
        interval += SLOW_DOWN_MS;
        pause = interval;
        break;
      case 'failed':
        pause = Math.max(interval, result.retryMs ?? Math.min(2 * Math.max(pause, 500), MAX_POLL_INTERVAL_MS));
        break;
      default:
        return result;
    }
  }
}

type PollResult =
  | GrantOutcome
  | { readonly kind: 'pending' | 'slow_down' }
  /** The poll failed, and may succeed later. */
  | { readonly kind: 'failed'; readonly message: string; readonly retryMs?: number };

async function pollOnce(coordinator: string, deviceCode: string, signal: AbortSignal): Promise<PollResult> {
  let answer: JsonAnswer;
  const ask: CoordinatorRequest = { form: { grant_type: DEVICE_GRANT, client_id: CLIENT_ID, device_code: deviceCode }, signal };
  try {
    answer = await requestCoordinator(coordinator, '/oauth/token', ask);
  } catch (error) {
    signal.throwIfAborted();
    // A captive portal or proxy may interfere temporarily, so an invalid response is retried like a missing response.
    if (error instanceof CoordinatorError) return { kind: 'failed', message: error.message };
    throw error;
  }
  const { status, value, headers } = answer;
  if (status === 200) {
    if (granted().Check(value)) return { kind: 'granted', token: value.access_token };
    return { kind: 'refused', message: 'the coordinator returned an invalid token' };
  }
  if (status === 429 || status >= 500) {
    const seconds = Number(headers.get('retry-after'));
    return { kind: 'failed', message: errorSentence(answer), ...(seconds > 0 ? { retryMs: Math.min(seconds, 600) * 1000 } : {}) };
  }
  switch ((value as { error?: unknown } | null)?.error) {
    case 'authorization_pending':
      return { kind: 'pending' };
    case 'slow_down':
      return { kind: 'slow_down' };
    case 'access_denied':
      return { kind: 'denied' };
    case 'expired_token':
      return { kind: 'expired' };
    default:
      return { kind: 'refused', message: errorSentence(answer) };
  }
}

/** Revokes a token (RFC 7009). Throws {@link CoordinatorError}, also if the coordinator refuses. */
export async function revokeToken(coordinator: string, token: string, ms: number): Promise<void> {
  const answer = await requestCoordinator(coordinator, '/oauth/revoke', { form: { client_id: CLIENT_ID, token }, ms });
  if (answer.status !== 200) throw new CoordinatorError('refused', errorSentence(answer), answer.status);
}
