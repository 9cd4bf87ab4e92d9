/** `update`: finds a newer version and switches to it after the running jobs. Rolls back if the new version fails. */
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { ControlError, requestSessionToken, requestStatus } from '../../control/control-client.js';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { labelOf, serviceDefinition, serviceManager } from '../../service/choose-manager.js';
import { type Installation, installation, updateAdvice } from '../../update/installation.js';
import { presentVersions } from '../../update/layout.js';
import { checkForUpdate, prepareRelease } from '../../update/prepare-release.js';
import { releaseKeys } from '../../update/release-keys.js';
import { releasePlatform, UpdateError } from '../../update/releases.js';
import { rolloutText } from '../../update/rollout-text.js';
import { awaitTrialEnd, brokenVersions, DEFAULT_TRIAL_TIMEOUT_MS, forgetBroken, switchTo } from '../../update/trial.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { httpAddress } from '../input/coordinator-option.js';
import { abortOnInterrupt } from '../input/interrupt.js';
import { type OwnerOptions, ownerOptions, UsageError } from '../input/owner-options.js';
import { ProgressLine } from '../output/progress-line.js';
import { print, wrapped } from '../output/terminal.js';

export const updateCommand: Command = {
  name: 'update',
  summary: 'Installs a newer version, if there is one.',
  usage: `update [--check | --prepare] [--to X.Y.Z | --now] [--coordinator URL] [--patience SECONDS]
       [--data-dir DIR] [--json]

--check only checks; --prepare downloads and verifies a version without switching to it.
--to selects a version; the previous version stays on disk.
--now takes a version that is being rolled out before this machine's turn, if the operator permits.
--patience is how many seconds the new version may take to prove itself (default 300).

The provider checks automatically every few hours, unless config.toml says
[update] automatic = false. With channel = "canary" there, this machine is among the first to update.
Exit codes: 0 done or up to date; 1 action needed; 4 the coordinator
is unreachable.`,
  run: update,
};

const OPTIONS = {
  check: { type: 'boolean' },
  prepare: { type: 'boolean' },
  to: { type: 'string' },
  now: { type: 'boolean' },
  coordinator: { type: 'string' },
  patience: { type: 'string' },
} as const;

/** The daemon has the token in memory. */
const TOKEN_MS = 3_000;
/** The daemon itself waits three seconds for the coordinator, and may just have started. */
const ANSWER_MS = 15_000;
/** Extra time for the drain and the service manager's restart delay, beyond the trial timeout. */
const SWITCH_OVERHEAD_MS = 120_000;

async function update(args: readonly string[]): Promise<number> {
  const options = ownerOptions(args, OPTIONS);
  const signal = abortOnInterrupt(new UpdateError('the update was interrupted; run the command again to continue'));
  try {
    const report = await run(options, installation(), signal);
    await print(options.json ? [JSON.stringify(report)] : report.text.flatMap((line) => wrapped('', line)));
    return NEEDS_OWNER.includes(report.outcome) ? EXIT.needsOwner : EXIT.fine;
  } catch (error) {
    if (!(error instanceof UpdateError)) throw error;
    process.stderr.write(`${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.\n`);
    return error.unreachable ? EXIT.unreachable : EXIT.needsOwner;
  }
}

const NEEDS_OWNER: readonly UpdateOutcome[] = ['not_offered', 'rolled_back', 'broken', 'not_ours'];

async function run(options: OwnerOptions, found: Installation, signal: AbortSignal): Promise<UpdateReport> {
  const { dataDir, values, json } = options;
  const { version: installed } = found;
  const trialTimeoutMs = trialTimeoutOf(values.patience);
  const to = typeof values.to === 'string' ? values.to : null;
  if (to !== null && values.now === true) throw new UsageError('--to and --now cannot be used together.');
  if (to !== null && !/^\d+\.\d+\.\d+$/.test(to)) throw new UsageError('--to must be a version such as 1.2.3.');
  const prefix = found.kind === 'own' ? found.prefix : null;
  const report = (outcome: UpdateOutcome, version: string | null, ...text: string[]): UpdateReport => ({
    outcome,
    installed,
    version,
    notes: null,
    text,
  });

  if (to === installed) return report('current', null, `Version ${to} is already installed.`);
  let version = to;
  let notes: string | null = null;
  // A version on disk needs no download, and may be older: the owner asked for it.
  if (to === null || prefix === null || !presentVersions(prefix).includes(to)) {
    const platform = releasePlatform();
    if (platform === null) throw new UpdateError(`there are no releases for this kind of machine (${process.platform} ${process.arch})`);
    const config = readConfig(configPath(dataDir));
    const coordinator = httpAddress(values.coordinator) ?? httpAddress(config.coordinator);
    if (coordinator === null) throw new UpdateError('no coordinator is set; use --coordinator, or set it in config.toml');
    const machine = {
      token: await requestSessionToken(dataDir, TOKEN_MS),
      channel: config.update.channel,
      isCheck: values.check === true || prefix === null,
    };
    const question = { coordinator, platform, keys: releaseKeys(), signal, machine };
    let choice = await checkForUpdate({ ...question, version: to }, prefix, installed);
    if (choice.kind === 'current' && choice.later?.mayUpdateNow === true && values.now === true)
      choice = await checkForUpdate({ ...question, version: choice.later.version }, prefix, installed);
    if (choice.kind === 'current' && choice.later !== null) {
      const { version: next, mayUpdateNow } = choice.later;
      const hint = mayUpdateNow && values.now !== true ? [`To take it now, run: inference-provider update --now`] : [];
      const refusal = values.now === true && !mayUpdateNow ? ['The operator does not permit an earlier update.'] : [];
      return report(to === null && values.now !== true ? 'later' : 'not_offered', next, rolloutText(choice.later), ...hint, ...refusal);
    }
    if (choice.kind === 'current') {
      return to === null
        ? report('current', null, `Version ${installed} is up to date.`)
        : report('not_offered', to, `Version ${to} is not available, or not newer than ${installed}.`);
    }
    if (choice.kind === 'broken') {
      return report(
        'broken',
        choice.version,
        `Version ${choice.version} is available, but failed on this machine: ${choice.reason}.`,
        `To try it again, run: inference-provider update --to ${choice.version}`,
      );
    }
    ({ version, notes } = choice.release);
    const news = [`Version ${version} is available; ${installed} is installed.`, ...(notes === '' ? [] : [notes])];
    if (values.check === true && found.kind === 'own') return { ...report('available', version, ...news), notes };
    if (prefix === null) return { ...report('not_ours', version, ...news, updateAdvice(found) ?? ''), notes };
    const line = new ProgressLine(process.stderr, performance.now.bind(performance));
    const onStep = (sentence: string): void => void (json || process.stderr.write(`${sentence}\n`));
    await prepareRelease({ prefix, release: choice.release, onStep, onProgress: (progress) => line.update(progress), signal }).finally(() =>
      line.end(),
    );
  } else if (values.check === true) {
    return report('available', to, `Version ${to} is already downloaded.`);
  }
  if (version === null || prefix === null) throw new UpdateError('no version to switch to');
  if (values.prepare === true)
    return { ...report('ready', version, `Version ${version} is ready. To switch, run: inference-provider update`), notes };
  return { ...(await switchNow(prefix, version, installed, dataDir, trialTimeoutMs, signal)), notes };
}

async function switchNow(
  prefix: string,
  version: string,
  installed: string,
  dataDir: string,
  trialTimeoutMs: number,
  signal: AbortSignal,
): Promise<UpdateReport> {
  const report = (outcome: UpdateOutcome, ...text: string[]): UpdateReport => ({ outcome, installed, version, notes: null, text });
  const running = await runningDaemon(dataDir);
  forgetBroken(prefix, version);
  switchTo(prefix, version, trialTimeoutMs, Date.now());
  if (running === null) return report('switched', `Version ${version} will be used from the next start.`);
  if (!(await restartService(dataDir))) {
    return report(
      'switched',
      `Version ${version} will be used from the next start. The provider (process ${running.pid}) was started by hand; restart it yourself.`,
    );
  }
  const works = await awaitTrialEnd(prefix, version, trialTimeoutMs + SWITCH_OVERHEAD_MS, signal);
  if (works === null)
    return report(
      'switched',
      `Version ${version} is running, but has not proved itself yet. If it fails, ${installed} is restored automatically.`,
    );
  if (works) return report('updated', `Updated to version ${version}.`);
  const reason = brokenVersions(prefix).find((broken) => broken.version === version)?.reason;
  return report(
    'rolled_back',
    `Version ${version} failed to start${reason === undefined ? '' : `: ${reason}`}. Version ${installed} was restored.`,
  );
}

async function runningDaemon(dataDir: string): Promise<DaemonStatus | null> {
  try {
    return await requestStatus(dataDir, ANSWER_MS);
  } catch (error) {
    if (error instanceof ControlError && error.problem === 'not_running') return null;
    throw error;
  }
}

function trialTimeoutOf(text: string | boolean | undefined): number {
  if (text === undefined) return DEFAULT_TRIAL_TIMEOUT_MS;
  const seconds = Number(text);
  if (!/^\d{1,5}$/.test(String(text)) || seconds < 1) throw new UsageError('--patience must be a whole number of seconds.');
  return seconds * 1000;
}

/** Restarts the service after its running jobs. Returns false if a daemon was started by hand. Throws ServiceError. */
async function restartService(dataDir: string): Promise<boolean> {
  const manager = await serviceManager(dataDir, undefined);
  if ((await manager.state(labelOf(dataDir))).kind === 'not_running') return false;
  await manager.restart(serviceDefinition(dataDir));
  return true;
}

type UpdateOutcome =
  /** Nothing newer is on offer. */
  | 'current'
  /** A newer version is being rolled out, and this machine's turn comes later. */
  | 'later'
  /** The requested version is neither offered nor on disk, or is not newer. */
  | 'not_offered'
  /** A newer version is offered; only the check was requested. */
  | 'available'
  /** Prepared beside the current version, without switching. */
  | 'ready'
  /** Active from the next start; no daemon runs now, or one started by hand. */
  | 'switched'
  /** Running and confirmed. */
  | 'updated'
  /** Failed to start; the previous version runs again. */
  | 'rolled_back'
  /** Known to fail on this machine. */
  | 'broken'
  /** Another installer, such as npm, owns this installation. */
  | 'not_ours';

interface UpdateReport {
  readonly outcome: UpdateOutcome;
  readonly installed: string;
  /** Version of the outcome; null if none is offered. */
  readonly version: string | null;
  readonly notes: string | null;
  /** Sentences for the owner. */
  readonly text: readonly string[];
}
