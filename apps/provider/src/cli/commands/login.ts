/** `login`: links this machine to an account, by a code that the owner approves in a browser (RFC 8628). */

import { spawn } from 'node:child_process';
import type { DeviceCode } from '../../account/device-flow.js';
import { defaultMachineName, signIn } from '../../account/sign-in.js';
import { ControlError, notifySignIn } from '../../control/control-client.js';
import type { LinkStatus } from '../../control/link-status.js';
import { readHostFacts } from '../../host/hardware/host-facts.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { resolveCoordinator } from '../input/coordinator-option.js';
import { untilInterrupted } from '../input/interrupt.js';
import { ownerOptions, UsageError } from '../input/owner-options.js';
import { clean, print } from '../output/terminal.js';

export const loginCommand: Command = {
  name: 'login',
  summary: 'Links this machine to your account, which receives its earnings.',
  usage: `login [--coordinator URL] [--name NAME] [--no-browser] [--data-dir DIR]

Shows a code and an address. Open the address on any device, sign in, and approve the code.
Exit codes: 0 linked, 1 refused, expired or canceled, 4 the coordinator is unreachable.`,
  run: login,
};

const OPTIONS = { coordinator: { type: 'string' }, name: { type: 'string' }, 'no-browser': { type: 'boolean' } } as const;
/** Longer than the daemon's wait of five seconds for the coordinator. */
const DAEMON_MS = 8_000;

async function login(args: readonly string[]): Promise<number> {
  const { dataDir, values, json } = ownerOptions(args, OPTIONS);
  if (json) throw new UsageError('login has no JSON output.');
  const coordinator = resolveCoordinator(values.coordinator, dataDir);
  const machineName = typeof values.name === 'string' ? clean(values.name).slice(0, 64) : defaultMachineName();
  const { chip } = await readHostFacts();
  const broken = 'Canceled. Nothing was linked, and the code will expire.';
  return untilInterrupted(broken, async (signal) => {
    const outcome = await signIn({
      coordinator,
      dataDir,
      machineName,
      chipName: chip,
      signal,
      onCode: (code) => showCode(code, values['no-browser'] !== true),
      say: (sentence) => process.stderr.write(`${clean(sentence)}\n`),
    });
    if (outcome.kind === 'failed') {
      process.stderr.write(`${clean(outcome.message)}\n`);
      return EXIT.needsOwner;
    }
    return reportLink(dataDir);
  });
}

export function showCode(code: DeviceCode, mayOpen: boolean): void {
  const minutes = Math.max(1, Math.round(code.expiresInMs / 60_000));
  const opened = mayOpen && openAddress(code.verificationUriComplete);
  process.stdout.write(
    [
      '',
      `  ${opened ? 'Your browser opens' : 'Open'}   ${clean(code.verificationUri)}`,
      `  ${opened ? 'and shows the code' : 'and enter the code'} ${clean(code.userCode)}`,
      '',
      `Or open ${clean(code.verificationUriComplete)}`,
      `Waiting for your approval; the code expires in ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}.`,
      '',
    ].join('\n'),
  );
}

/** Notifies a running daemon and prints the result. Returns the exit code. */
export async function reportLink(dataDir: string): Promise<number> {
  let status: LinkStatus;
  try {
    status = await notifySignIn(dataDir, DAEMON_MS);
  } catch (error) {
    if (!(error instanceof ControlError)) throw error;
    await print([
      error.problem === 'not_running'
        ? 'Approved. This machine will be linked when the provider starts.'
        : 'Approved, but the provider is not responding. Restart it to link this machine.',
    ]);
    return EXIT.fine;
  }
  if (status.state === 'linked') {
    await print([`Linked. Earnings of this machine go to ${clean(status.account_name ?? 'your account')}.`]);
    return EXIT.fine;
  }
  if (status.state === 'waiting') {
    await print(['Approved. The provider is offline; this machine will be linked when it reconnects.']);
    return EXIT.fine;
  }
  process.stderr.write(`Approved, but this machine is not linked: ${clean(status.remedy ?? status.reason ?? status.state)}\n`);
  return EXIT.needsOwner;
}

interface BrowserEnvironment {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
}

/** Command that opens an address; null without a local graphical session. */
export function browserCommand(address: string, { platform, env, isTerminal }: BrowserEnvironment): readonly [string, ...string[]] | null {
  const isRemoteShell = env.SSH_CONNECTION !== undefined || env.SSH_TTY !== undefined;
  // Only web addresses: `open` also starts programs.
  if (platform !== 'darwin' || !isTerminal || isRemoteShell || !/^https?:\/\//.test(address)) return null;
  return ['/usr/bin/open', address];
}

/** Returns whether a browser was started. */
export function openAddress(address: string): boolean {
  const environment = { platform: process.platform, env: process.env, isTerminal: process.stdout.isTTY === true };
  const command = browserCommand(address, environment);
  if (command === null) return false;
  const [program, ...args] = command;
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
  return true;
}
