/**
 * Keeps the network from the processes that hold a model: they are fed by others' words and run native code, and have no business
 * with it. On Linux they get a network namespace of their own without any way out, on macOS a sandbox profile. Where neither can
 * be had they run without, and the daemon's status says so.
 */
import { execFile } from 'node:child_process';

export interface Confinement {
  readonly kind: 'network_namespace' | 'sandbox' | 'none';
  /** Why there is none, for the owner; null where there is one. */
  readonly why: string | null;
  /** What goes before the program on the command line. */
  readonly wrap: readonly string[];
}

/** sandbox-exec(1) is marked as deprecated by Apple and has no successor for programs that are no apps; it works on macOS 15. */
const PROFILE = '(version 1)(allow default)(deny network*)';
const CANDIDATES: readonly {
  readonly platform: NodeJS.Platform;
  readonly kind: Confinement['kind'];
  readonly wrap: readonly string[];
  readonly probe: string;
}[] = [
  { platform: 'linux', kind: 'network_namespace', wrap: ['unshare', '--user', '--map-current-user', '--net', '--'], probe: 'true' },
  // For root where user namespaces are forbidden.
  { platform: 'linux', kind: 'network_namespace', wrap: ['unshare', '--net', '--'], probe: 'true' },
  { platform: 'darwin', kind: 'sandbox', wrap: ['/usr/bin/sandbox-exec', '-p', PROFILE], probe: '/usr/bin/true' },
];
const PROBE_MS = 10_000;

export type TryProgram = (command: readonly string[]) => Promise<string | null>;

/** The first that works here. `attempt` runs a command and resolves with what was wrong, or null. */
export async function findConfinement(
  platform: NodeJS.Platform = process.platform,
  attempt: TryProgram = tryProgram,
): Promise<Confinement> {
  let why = `there is no way on ${platform}`;
  for (const { kind, wrap, probe, platform: where } of CANDIDATES) {
    if (where !== platform) continue;
    const problem = await attempt([...wrap, probe]);
    if (problem === null) return { kind, why: null, wrap };
    why = problem;
  }
  return { kind: 'none', why, wrap: [] };
}

/** For `fork`: what makes the child run so. The IPC channel, a socket pair that exists before, goes through. */
export function forkedIn({ wrap }: Pick<Confinement, 'wrap'>): { readonly execPath: string; readonly execArgv: string[] } {
  const [program, ...rest] = [...wrap, process.execPath];
  return { execPath: program ?? process.execPath, execArgv: rest };
}

function tryProgram([program = '', ...args]: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: PROBE_MS }, (error, _stdout, stderr) => {
      resolve(error === null ? null : (stderr.trim().split('\n')[0] || error.message).slice(0, 200));
    });
  });
}
