/** `findConfinement` finds a way to deny network access to model processes: a network namespace on Linux, a sandbox on macOS. */
import { execFile } from 'node:child_process';

export interface Confinement {
  readonly kind: 'network_namespace' | 'sandbox' | 'none';
  /** Why the kind is `none`, for the owner; else null. */
  readonly why: string | null;
  /** Command-line prefix of the confined program. Empty for `none`. */
  readonly wrap: readonly string[];
}

/** Apple marks sandbox-exec(1) as deprecated without a successor for plain programs. Works on macOS 15. */
const PROFILE = '(version 1)(allow default)(deny network*)';
const CANDIDATES: readonly {
  readonly platform: NodeJS.Platform;
  readonly kind: Confinement['kind'];
  readonly wrap: readonly string[];
  /** Program that does nothing, to test `wrap`. */
  readonly probe: string;
}[] = [
  { platform: 'linux', kind: 'network_namespace', wrap: ['unshare', '--user', '--map-current-user', '--net', '--'], probe: 'true' },
  // Works for root if user namespaces are forbidden.
  { platform: 'linux', kind: 'network_namespace', wrap: ['unshare', '--net', '--'], probe: 'true' },
  { platform: 'darwin', kind: 'sandbox', wrap: ['/usr/bin/sandbox-exec', '-p', PROFILE], probe: '/usr/bin/true' },
];
const PROBE_MS = 10_000;

/** Runs a command. Resolves to null if it succeeds, else to the reason of its failure. */
type TryCommand = (command: readonly string[]) => Promise<string | null>;

/** Returns the first confinement that works on this machine, or the kind `none`. Never rejects. */
export async function findConfinement(platform: NodeJS.Platform = process.platform, runs: TryCommand = tryCommand): Promise<Confinement> {
  let why = `there is no way on ${platform}`;
  for (const { kind, wrap, probe, platform: where } of CANDIDATES) {
    if (where !== platform) continue;
    const problem = await runs([...wrap, probe]);
    if (problem === null) return { kind, why: null, wrap };
    why = problem;
  }
  return { kind: 'none', why, wrap: [] };
}

/** Options of `child_process.fork` for a confined child. The IPC channel, an inherited socket pair, stays usable. */
export function forkedIn({ wrap }: Pick<Confinement, 'wrap'>): { readonly execPath: string; readonly execArgv: string[] } {
  const [program, ...rest] = [...wrap, process.execPath];
  return { execPath: program ?? process.execPath, execArgv: rest };
}

function tryCommand([program = '', ...args]: readonly string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: PROBE_MS }, (error, _stdout, stderr) => {
      resolve(error === null ? null : (stderr.trim().split('\n')[0] || error.message).slice(0, 200));
    });
  });
}
