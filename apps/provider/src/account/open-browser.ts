/** Opens an address in the owner's browser, where there is one in front of them. */
import { spawn } from 'node:child_process';

export interface Seat {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isTerminal: boolean;
}

/** The command that opens an address; null where it would open nowhere, or on a screen that nobody looks at. */
export function browserCommand(address: string, { platform, env, isTerminal }: Seat): readonly [string, ...string[]] | null {
  const isFarAway = env.SSH_CONNECTION !== undefined || env.SSH_TTY !== undefined;
  // Nothing but an address of the web: `open` starts programs, too.
  if (platform !== 'darwin' || !isTerminal || isFarAway || !/^https?:\/\//.test(address)) return null;
  return ['/usr/bin/open', address];
}

/** Whether the browser was asked. What becomes of it is not waited for. */
export function openBrowser(address: string, seat: Seat): boolean {
  const command = browserCommand(address, seat);
  if (command === null) return false;
  const [program, ...args] = command;
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.on('error', () => {});
  child.unref();
  return true;
}
