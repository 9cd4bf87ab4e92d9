/** `signIn` gets a machine token by the device flow and stores the token, for `login` and `setup`. The daemon then links the machine. */
import { hostname } from 'node:os';
import { cleanLabel } from '@inference/protocol';
import { writeAccount } from './account-file.js';
import { awaitGrant, type DeviceCode, requestCode, revokeToken } from './device-flow.js';

interface SignInOptions {
  readonly coordinator: string;
  readonly dataDir: string;
  readonly machineName: string;
  readonly chipName: string | null;
  readonly signal: AbortSignal;
  /** Called with the code that the owner must approve. */
  readonly onCode: (code: DeviceCode) => void;
  readonly say: (sentence: string) => void;
}

type SignInOutcome = { readonly kind: 'signed_in' } | { readonly kind: 'failed'; readonly message: string };

const REVOKE_MS = 5_000;

/** Throws CoordinatorError if the coordinator gives no code, or the signal's reason. */
export async function signIn({ coordinator, dataDir, signal, onCode, say, ...machine }: SignInOptions): Promise<SignInOutcome> {
  const code = await requestCode(coordinator, machine, signal);
  onCode(code);
  let isFailing = false;
  const outcome = await awaitGrant(coordinator, code, {
    signal,
    onPollError: (sentence) => {
      if (sentence !== null && !isFailing) say(`${sentence}; trying again.`);
      if (sentence === null && isFailing) say('The coordinator is reachable again.');
      isFailing = sentence !== null;
    },
  });
  switch (outcome.kind) {
    case 'granted':
      try {
        writeAccount(dataDir, { coordinator, token: outcome.token, signed_in_at: Date.now() });
      } catch (error) {
        await revokeToken(coordinator, outcome.token, REVOKE_MS).catch(() => {});
        const { code: why = 'unknown' } = error as NodeJS.ErrnoException;
        return { kind: 'failed', message: `The sign-in could not be stored in ${dataDir} (${why}) and was revoked.` };
      }
      return { kind: 'signed_in' };
    case 'denied':
      return { kind: 'failed', message: 'The request was denied in the console. Nothing was linked.' };
    case 'expired':
      return { kind: 'failed', message: 'The code has expired, and nothing was linked. Run the command again for a new code.' };
    case 'refused':
      return { kind: 'failed', message: `The coordinator refused: ${outcome.message}` };
    default:
      return outcome satisfies never;
  }
}

export function defaultMachineName(): string {
  return cleanLabel(hostname().replace(/\.(local|lan|home|localdomain)$/i, ''), 64, 'a machine');
}
