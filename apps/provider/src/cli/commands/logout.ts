/** `logout`: removes this machine's token, revokes it at the coordinator, and tells a running daemon. */
import { AccountFileError, forgetAccount, readAccount } from '../../account/account-file.js';
import { CoordinatorError } from '../../account/coordinator-http.js';
import { revokeToken } from '../../account/device-flow.js';
import { ControlError, notifySignIn } from '../../control/control-client.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions } from '../input/owner-options.js';
import { clean, print } from '../output/terminal.js';

export const logoutCommand: Command = {
  name: 'logout',
  summary: 'Unlinks this machine from your account.',
  usage: `logout [--data-dir DIR] [--json]

Past earnings stay in the account. The machine continues to serve; new earnings are held until you link it again.
Exit codes: 0 success, 4 the local token was removed, but the coordinator is unreachable.`,
  run: logout,
};

const REVOKE_MS = 10_000;
const DAEMON_MS = 8_000;

async function logout(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const { coordinator, revoked, problem } = await forget(dataDir);
  await notifySignIn(dataDir, DAEMON_MS).catch((error: unknown) => {
    // Nothing to notify if no daemon runs.
    if (!(error instanceof ControlError)) throw error;
  });
  if (json) await print([JSON.stringify({ was_linked: coordinator !== null, revoked, problem })]);
  else if (coordinator === null) await print(['This machine was not signed in.']);
  else if (revoked) await print(['This machine is no longer linked to your account. Past earnings stay in the account.']);
  else {
    process.stderr.write(`${clean(problem ?? '')}.\n`);
    process.stderr.write(
      `You are signed out on this machine, but ${clean(coordinator)} could not be notified. Remove the machine under Machines in the console.\n`,
    );
  }
  return coordinator === null || revoked ? EXIT.fine : EXIT.unreachable;
}

/** Removes the token in any case. `coordinator` is null if there was no sign-in. */
async function forget(dataDir: string): Promise<{ coordinator: string | null; revoked: boolean; problem: string | null }> {
  let coordinator: string | null = null;
  let problem: string | null = null;
  try {
    const account = readAccount(dataDir);
    if (account === null) return { coordinator, revoked: false, problem };
    coordinator = account.coordinator;
    await revokeToken(account.coordinator, account.token, REVOKE_MS);
  } catch (error) {
    if (!(error instanceof CoordinatorError || error instanceof AccountFileError)) throw error;
    problem = error.message;
    coordinator ??= 'the coordinator';
  } finally {
    forgetAccount(dataDir);
  }
  return { coordinator, revoked: problem === null, problem };
}
