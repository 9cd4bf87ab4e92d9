/** `update`: finds and installs a newer version, and restarts the service with it. If the version fails, the guard restores the old one. */

import type { Release, RolloutNotice } from '@inference/protocol';
import { configPath } from '../../config/data-dir.js';
import { readConfig } from '../../config/read-config.js';
import { ControlError, requestSessionToken, requestStatus } from '../../control/control-client.js';
import type { DaemonStatus } from '../../control/daemon-status.js';
import type { Progress } from '../../models/store/transfer.js';
import { labelOf, serviceDefinition, serviceManager } from '../../service/choose-manager.js';
import { foreignDaemon } from '../../service/foreign-daemon.js';
import { systemdUnitOf } from '../../service/systemd-unit-of.js';
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

/** Short, because the daemon has the token in memory. */
const TOKEN_MS = 3_000;
/** Longer than the daemon waits for the coordinator (`VIEW_MS`), and than a daemon's start. */
const ANSWER_MS = 15_000;
/** For the drain and the service manager's restart delay, beyond the trial timeout. */
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

type Report = (outcome: UpdateOutcome, version: string | null, ...text: string[]) => UpdateReport;

interface UpdateRun {
  readonly options: OwnerOptions;
  readonly found: Installation;
  /** Folder of the installed versions. Null if another installer owns the installation. */
  readonly prefix: string | null;
  /** Version of `--to`. Null for the newest on offer. */
  readonly to: string | null;
  readonly signal: AbortSignal;
  readonly report: Report;
}

async function run(options: OwnerOptions, found: Installation, signal: AbortSignal): Promise<UpdateReport> {
  const { dataDir, values } = options;
  const { version: installed } = found;
  const trialTimeoutMs = trialTimeoutOf(values.patience);
  const to = typeof values.to === 'string' ? values.to : null;
  if (to !== null && values.now === true) throw new UsageError('--to and --now cannot be used together.');
  if (to !== null && !/^\d+\.\d+\.\d+$/.test(to)) throw new UsageError('--to must be a version such as 1.2.3.');
  const prefix = found.kind === 'own' ? found.prefix : null;
  const report: Report = (outcome, version, ...text) => ({ outcome, installed, version, notes: null, text });
  if (to === installed) return report('current', null, `Version ${to} is already installed.`);

  let version = to;
  let notes: string | null = null;
  // A version on disk needs no download. An older version is accepted, because the owner requested it.
  if (to === null || prefix === null || !presentVersions(prefix).includes(to)) {
    const updateRun: UpdateRun = { options, found, prefix, to, signal, report };
    const offer = await findRelease(updateRun);
    if ('outcome' in offer) return offer;
    const prepared = await prepare(updateRun, offer.release);
    if (prepared !== null) return { ...prepared, notes: offer.release.notes };
    ({ version, notes } = offer.release);
  } else if (values.check === true) {
    return report('available', to, `Version ${to} is already downloaded.`);
  }
  if (version === null || prefix === null) throw new UpdateError('no version to switch to');
  if (values.prepare === true)
    return { ...report('ready', version, `Version ${version} is ready. To switch, run: inference-provider update`), notes };
  return { ...(await switchNow(prefix, version, installed, dataDir, trialTimeoutMs, signal)), notes };
}

/** Returns a report if no release can be installed now. */
async function findRelease(updateRun: UpdateRun): Promise<{ readonly release: Release } | UpdateReport> {
  const { options, found, prefix, to, signal, report } = updateRun;
  const { dataDir, values } = options;
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
  const query = { coordinator, platform, keys: releaseKeys(), signal, machine };
  let choice = await checkForUpdate({ ...query, version: to }, prefix, found.version);
  if (choice.kind === 'current' && choice.later?.mayUpdateNow === true && values.now === true)
    choice = await checkForUpdate({ ...query, version: choice.later.version }, prefix, found.version);
  switch (choice.kind) {
    case 'update':
      return { release: choice.release };
    case 'current':
      return reportNoRelease(updateRun, choice.later);
    case 'broken':
      return report(
        'broken',
        choice.version,
        `Version ${choice.version} is available, but failed on this machine: ${choice.reason}.`,
        `To try it again, run: inference-provider update --to ${choice.version}`,
      );
    default:
      return choice satisfies never;
  }
}

/** @param later Newer version that the rollout does not offer to this machine yet; null if there is none. */
function reportNoRelease({ options: { values }, found, to, report }: UpdateRun, later: RolloutNotice | null): UpdateReport {
  if (later !== null) {
    const { version, mayUpdateNow } = later;
    const hint = mayUpdateNow && values.now !== true ? [`To take it now, run: inference-provider update --now`] : [];
    const refusal = values.now === true && !mayUpdateNow ? ['The operator does not permit an earlier update.'] : [];
    return report(to === null && values.now !== true ? 'later' : 'not_offered', version, rolloutText(later), ...hint, ...refusal);
  }
  return to === null
    ? report('current', null, `Version ${found.version} is up to date.`)
    : report('not_offered', to, `Version ${to} is not available, or not newer than ${found.version}.`);
}

/** Returns a report if the owner only checks, or another installer owns the installation. */
async function prepare({ options, found, prefix, signal, report }: UpdateRun, release: Release): Promise<UpdateReport | null> {
  const { version, notes } = release;
  const lines = [`Version ${version} is available; ${found.version} is installed.`, ...(notes === '' ? [] : [notes])];
  if (options.values.check === true && found.kind === 'own') return report('available', version, ...lines);
  if (prefix === null) return report('not_ours', version, ...lines, updateAdvice(found) ?? '');
  const line = new ProgressLine(process.stderr, performance.now.bind(performance));
  const onStep = (sentence: string): void => void (options.json || process.stderr.write(`${sentence}\n`));
  const onProgress = (progress: Progress): void => void line.update(progress);
  await prepareRelease({ prefix, release, onStep, onProgress, signal }).finally(() => line.end());
  return null;
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
  if (!(await restartService(dataDir, running))) {
    const unit = systemdUnitOf(running.pid);
    if (unit !== null) {
      return report(
        'switched',
        `Version ${version} will be used from the next start. The provider (process ${running.pid}) runs under systemd, as ${unit}; restart it yourself.`,
      );
    }
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

/** Returns false if the service does not run the daemon. Throws ServiceError. */
async function restartService(dataDir: string, running: DaemonStatus): Promise<boolean> {
  const manager = await serviceManager(dataDir, undefined);
  if (foreignDaemon(running, await manager.state(labelOf(dataDir))) !== null) return false;
  await manager.restart(serviceDefinition(dataDir));
  return true;
}

type UpdateOutcome =
  /** Nothing newer is on offer. */
  | 'current'
  /** A newer version is being rolled out, but not offered to this machine yet. */
  | 'later'
  /** The version of `--to` or `--now` is not on disk, and is not offered to this machine or not newer. */
  | 'not_offered'
  /** A newer version is offered; only the check was requested. */
  | 'available'
  /** Prepared, without switching. */
  | 'ready'
  /** Current, but not confirmed: the service does not run, or its trial continues. */
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
