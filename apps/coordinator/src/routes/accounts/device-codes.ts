/**
 * `/console/v1/device-codes`: an owner looks up a machine's request to be linked, by its user code (RFC 8628), and approves or denies it.
 *
 * User codes are short, so wrong codes are limited per account and network. An unknown code, and a code that another account decided, get
 * the same response.
 */
import { type ConsoleDeviceCode, ConsoleDeviceCodeSchema, RequestError } from '@inference/formats';
import type { DeviceCode, DeviceCodeRepository } from '../../database/accounts/device-code-repository.js';
import { type AttemptCounters, countInAll } from '../../limits/attempt-counters.js';
import { networkOf } from '../../limits/network-address.js';
import { isoTime } from '../parameters/times.js';
import type { ConsoleApi, ConsoleCall } from '../plugins/console-api.js';

const WINDOW_MS = 10 * 60_000;
/** Per window. Allows for typing errors. */
const MAX_WRONG_CODES_PER_ACCOUNT = 10;
/** Per window. Many people may share a network. */
const MAX_WRONG_CODES_PER_NETWORK = 50;

export function addDeviceCodeRoutes(
  api: ConsoleApi,
  { codes, attempts }: { readonly codes: DeviceCodeRepository; readonly attempts: AttemptCounters },
): void {
  const byAccount = attempts.counter('device codes of an account', { maxAttempts: MAX_WRONG_CODES_PER_ACCOUNT, windowMs: WINDOW_MS });
  const byNetwork = attempts.counter('device codes of an address', { maxAttempts: MAX_WRONG_CODES_PER_NETWORK, windowMs: WINDOW_MS });

  /** Runs `ask` with the user code of the path. A wrong code counts. Throws RequestError for a wrong code, and at a limit. */
  const withinLimits = async (call: ConsoleCall<unknown>, ask: (userCode: string) => Promise<DeviceCode | null>): Promise<DeviceCode> => {
    const attempt = await countInAll([
      [byAccount, call.caller.account.id],
      [byNetwork, networkOf(call.address)],
    ]);
    if (!attempt.isAdmitted) throw new TooManyCodes(attempt.retryAfter);
    const code = await ask(call.params.user_code ?? '').catch(async (error: unknown) => {
      await attempt.refund();
      throw error;
    });
    if (code === null) throw new RequestError('not_found', null, 'There is no such code. Codes are valid for ten minutes.');
    await attempt.refund();
    return code;
  };

  api.add({ method: 'GET', path: '/device-codes/:user_code', response: ConsoleDeviceCodeSchema }, async (call) =>
    bodyOf(await withinLimits(call, (userCode) => codes.find(userCode, call.caller.account.id))),
  );

  for (const [path, decision] of [
    ['approve', 'approved'],
    ['deny', 'denied'],
  ] as const) {
    api.add({ method: 'POST', path: `/device-codes/:user_code/${path}`, response: ConsoleDeviceCodeSchema }, async (call) => {
      const code = await withinLimits(call, (userCode) => codes.decide(userCode, call.caller.account.id, decision));
      if (code.state !== decision) throw new RequestError('conflict', null, PROBLEMS[code.state]);
      return bodyOf(code);
    });
  }
}

const PROBLEMS: Readonly<Record<DeviceCode['state'], string>> = {
  waiting: 'The code could not be decided. Try again.',
  approved: 'This code was approved before. Remove the machine under Machines if that was a mistake.',
  denied: 'This code was denied before. Run the command on the machine again for a new one.',
  expired: 'This code has expired. Run the command on the machine again for a new one.',
};

class TooManyCodes extends RequestError {
  constructor(readonly retryAfter: number) {
    super('rate_limit_exceeded', null, 'Too many wrong codes were tried. Try again later.');
  }
}

function bodyOf(code: DeviceCode): ConsoleDeviceCode {
  return {
    user_code: code.userCode,
    machine_name: code.machineName,
    chip_name: code.chipName,
    address: code.address,
    requested_at: isoTime(code.requestedAt),
    expires_at: isoTime(code.expiresAt),
    state: code.state,
  };
}
