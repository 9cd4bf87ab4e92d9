/**
 * One daemon with a real enclave for each user of a machine, whatever its data directory: two would promise the same memory and the
 * same processor twice. Held by a socket in the user's home directory, so that it ends with the process that holds it.
 */
import { mkdirSync } from 'node:fs';
import { AlreadyRunningError, ControlServer } from './control-server.js';

export class MachineLockedError extends Error {
  override name = 'MachineLockedError';
  constructor() {
    super('another provider of this user runs on this machine, with another data directory; one is enough: it can serve several models');
  }
}

/** Throws {@link MachineLockedError}. `folder`: the same for all daemons of a user. Returns what gives it back. */
export async function lockMachine(folder: string): Promise<() => Promise<void>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const server = await ControlServer.open(folder, [], 'machine.sock');
    return () => server.close();
  } catch (error) {
    throw error instanceof AlreadyRunningError ? new MachineLockedError() : error;
  }
}
