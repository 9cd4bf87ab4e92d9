/**
 * `SelfUpdate` keeps the agent current, if this project's installer installed it (kind `own`).
 *
 * Confirms the running version if it is on trial, prepares newer versions in a child process, and switches to them under a service manager.
 */
import { spawn } from 'node:child_process';
import { lazyValidator } from '@inference/protocol';
import type { Logger } from 'pino';
import Type from 'typebox';
import { requestStatus } from '../control/control-client.js';
import { updateAutomatically } from '../update/automatic-updates.js';
import { type Installation, launchCommand } from '../update/installation.js';
import { DEFAULT_TRIAL_TIMEOUT_MS, switchTo } from '../update/trial.js';
import { confirmTrial, type Health } from '../update/trial-health.js';

interface SelfUpdateOptions {
  readonly installation: Installation;
  readonly dataDir: string;
  readonly coordinator: string;
  /** Whether a service manager runs the daemon. */
  readonly service: boolean;
  readonly automatic: () => boolean;
  readonly isRegistered: () => boolean;
  readonly onRestart: () => void;
  /** Called with a prepared version if no service manager runs the daemon. */
  readonly onOwnerNeeded: (version: string) => void;
  readonly log: Logger;
  readonly everyMs?: number;
}

const COORDINATOR_TIMEOUT_MS = 3_000;
const STATUS_TIMEOUT_MS = 5_000;
/** After a timeout, the next check resumes the partial download. */
const UPDATE_TIMEOUT_MS = 3_600_000;
/** Retained characters, from the end. */
const MAX_OUTPUT = 64 << 10;

const reportValidator = lazyValidator(
  Type.Object({ outcome: Type.String(), version: Type.Union([Type.String(), Type.Null()]), text: Type.Array(Type.String()) }),
);

export class SelfUpdate {
  readonly #closing = new AbortController();
  readonly #startedAt = performance.now();
  #ended: Promise<unknown>;
  #pending: { readonly version: string; readonly text: string } | null = null;

  constructor(private readonly options: SelfUpdateOptions) {
    this.#ended = this.#run(options.installation);
  }

  /** Newer version that was not offered to this machine at the last check, or null. */
  get pending(): { readonly version: string; readonly text: string } | null {
    return this.#pending;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#ended;
  }

  async #run(installation: Installation): Promise<void> {
    if (installation.kind !== 'own') return;
    const { automatic, log, everyMs } = this.options;
    const { prefix, version } = installation;
    const { signal } = this.#closing;
    const confirmed = confirmTrial({ prefix, version, health: () => this.#health(), signal }).then((isConfirmed) => {
      if (isConfirmed) log.info({ event: 'update_confirmed', version }, 'this version works; its trial has ended');
    });
    const updated = updateAutomatically({
      isEnabled: automatic,
      prepareUpdate: () => this.#prepareUpdate(installation),
      onReady: (ready) => this.#onReady(prefix, ready),
      onProblem: (error) =>
        log.warn({ event: 'update_failed', reason: error instanceof Error ? error.message : 'unknown' }, 'the update was not installed'),
      signal,
      ...(everyMs === undefined ? {} : { everyMs }),
    });
    await Promise.all([confirmed, updated]);
  }

  async #health(): Promise<Health> {
    const { dataDir, coordinator, isRegistered } = this.options;
    const answers = requestStatus(dataDir, STATUS_TIMEOUT_MS).then(
      () => true,
      () => false,
    );
    const isUnreachable = fetch(`${coordinator}/health`, { signal: AbortSignal.timeout(COORDINATOR_TIMEOUT_MS), redirect: 'error' }).then(
      async (response) => {
        await response.body?.cancel();
        return false;
      },
      () => true,
    );
    const runningForMs = performance.now() - this.#startedAt;
    return { registered: isRegistered(), isCoordinatorUnreachable: await isUnreachable, answersCommands: await answers, runningForMs };
  }

  /** Runs `update --prepare`. Returns the version that is ready, or null. */
  async #prepareUpdate(installation: Installation): Promise<string | null> {
    const { dataDir, coordinator } = this.options;
    const [program = '', ...first] = launchCommand(installation);
    const args = [...first, 'update', '--prepare', '--json', '--data-dir', dataDir, '--coordinator', coordinator];
    const { code, stdout, stderr } = await this.#output(program, args);
    if (code !== 0)
      throw new Error(
        stderr.trim().split('\n').at(-1) || (code === null ? 'update timed out or was killed' : `update exited with code ${code}`),
      );
    const report: unknown = JSON.parse(stdout);
    if (!reportValidator().Check(report)) throw new Error('update --prepare printed an unexpected report');
    this.#pending = report.outcome === 'later' && report.version !== null ? { version: report.version, text: report.text.join(' ') } : null;
    return report.outcome === 'ready' ? report.version : null;
  }

  #output(program: string, args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    return new Promise((resolve, reject) => {
      const child = spawn(program, [...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
        signal: this.#closing.signal,
        timeout: UPDATE_TIMEOUT_MS,
      });
      let stdout = '';
      let stderr = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout = (stdout + text).slice(-MAX_OUTPUT)));
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr = (stderr + text).slice(-MAX_OUTPUT)));
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, stdout, stderr }));
    });
  }

  #onReady(prefix: string, version: string): void {
    const { log, service, onOwnerNeeded, onRestart } = this.options;
    if (!service) {
      log.info({ event: 'update_ready', version }, 'a newer version is ready; to switch, run: inference-provider update');
      onOwnerNeeded(version);
      return;
    }
    log.info({ event: 'update_switching', version }, 'a newer version is ready; the provider restarts with the new version');
    switchTo(prefix, version, DEFAULT_TRIAL_TIMEOUT_MS, Date.now());
    onRestart();
  }
}
