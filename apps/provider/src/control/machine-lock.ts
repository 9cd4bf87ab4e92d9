/** `lockMachine` permits only one daemon with a real enclave per user. The lock is a socket in the user's default data directory. */
import { mkdirSync } from 'node:fs';
import { AlreadyRunningError, ControlServer } from './control-server.js';

export class MachineLockedError extends Error {
  override name = 'MachineLockedError';
  constructor() {
    super(
      'another provider of this user is already running on this machine with another data directory; one provider can serve several models',
    );
  }
}

/** Returns the unlock function. Throws {@link MachineLockedError}. All daemons of a user pass the same `folder`. */
export async function lockMachine(folder: string): Promise<() => Promise<void>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const server = await ControlServer.open(folder, [], 'machine.sock');
    return () => server.close();
  } catch (error) {
    throw error instanceof AlreadyRunningError ? new MachineLockedError() : error;
  }
}
