/** `examine` runs all checks of `doctor` and returns their results, causes before consequences. Takes at most eight seconds. */
import { join } from 'node:path';
import { type Config, DEFAULTS } from '../config/config.js';
import { modelMemorySettings } from '../config/model-memory.js';
import { ControlError, requestSessionToken, requestStatus } from '../control/control-client.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import { FileHashes } from '../models/file-hash.js';
import { adjacentProjectorPath } from '../models/projector.js';
import { ModelStore } from '../models/store/model-store.js';
import { labelOf, serviceManager } from '../service/choose-manager.js';
import type { Installation } from '../update/installation.js';
import { checkForUpdate } from '../update/prepare-release.js';
import { releaseKeys } from '../update/release-keys.js';
import { releasePlatform } from '../update/releases.js';
import { type Check, type CheckResult, type Finding, ok, problem, runChecks, skipped } from './check.js';
import { checkHardening, checkSecrets, checkService, checkSettings } from './configuration-checks.js';
import { checkAccount, checkClock, checkCoordinatorView, checkTraffic } from './coordinator-checks.js';
import { checkEnclave } from './enclave-check.js';
import { checkCommand, checkUpdates } from './installation-checks.js';
import { type CheckedModel, checkCondition, checkDataDirectory, checkDisk, checkModel, checkSleep } from './machine-checks.js';
import { checkModelFiles } from './model-checks.js';
import { reachCoordinator } from './network-check.js';

export interface DoctorTarget {
  readonly dataDir: string;
  readonly found: Installation;
  /** Null if the settings cannot be read. */
  readonly config: Config | null;
  /** Address of option or settings; overrides the daemon's. */
  readonly coordinator: string | null;
  /** Path; null for the served models. */
  readonly model: string | null;
  /** Whether the enclave is simulated, unless a daemon answers. */
  readonly simulated: boolean;
}

interface DoctorReport {
  readonly checks: readonly CheckResult[];
  readonly status: DaemonStatus | null;
}

const DAEMON_MS = 3_200;
/** Limit of each concurrent check after the daemon check. */
const CHECK_MS = 4_000;
/** Short, because the daemon has the token in memory. */
const TOKEN_MS = 1_000;

export async function examine(target: DoctorTarget): Promise<DoctorReport> {
  const { dataDir, found, config } = target;
  let status: DaemonStatus | null = null;
  let isFrozen = false;
  const checkProvider = async (): Promise<Finding[]> => {
    try {
      status = await requestStatus(dataDir, DAEMON_MS);
      return [ok(`the provider ${status.version} is ${status.state} (process ${status.pid})`)];
    } catch (error) {
      if (!(error instanceof ControlError)) throw error;
      if (error.problem === 'not_running') return [problem(error.message, 'Run: inference-provider start')];
      isFrozen = true;
      return [problem(error.message, 'Run: inference-provider restart')];
    }
  };
  const first = await runChecks([{ name: 'provider', run: checkProvider }], DAEMON_MS + 300);
  // Assigned in `checkProvider`.
  const known = status as DaemonStatus | null;
  const isStarting = known?.state === 'starting';
  const url = target.coordinator ?? known?.coordinator ?? null;
  const reached = reachCoordinator(url);
  const limit = AbortSignal.timeout(CHECK_MS);
  const simulated = known?.simulated_enclave ?? target.simulated;
  const memorySettings = modelMemorySettings(config ?? DEFAULTS);
  const store = new ModelStore(join(dataDir, 'models'));
  const hashes = new FileHashes(join(dataDir, 'model-hashes.json'));
  const isReachable = async (): Promise<boolean> => !(await reached).findings.some(({ state }) => state === 'problem');
  const skippedCheck = async (): Promise<Finding[]> => {
    if (isStarting) return [skipped('the provider is still starting')];
    return [skipped(isFrozen ? 'the provider is not responding' : 'the provider is not running')];
  };
  const checks: Check[] = [
    { name: 'settings', run: () => checkSettings(dataDir, known) },
    { name: 'service', run: async () => checkService(await serviceManager(dataDir, undefined), labelOf(dataDir), known, isFrozen) },
    { name: 'data directory', run: () => checkDataDirectory(dataDir) },
    { name: 'secrets', run: () => checkSecrets(dataDir) },
    // A frozen or starting daemon uses the key, so no second helper is started.
    {
      name: 'enclave',
      run: isFrozen || isStarting ? skippedCheck : () => checkEnclave(dataDir, known !== null, simulated, found.version),
    },
    { name: 'hardening', run: async () => (known === null ? [] : checkHardening(known)) },
    { name: 'disk', run: () => checkDisk(dataDir) },
    ...modelsOf(target, known, store).map((files) => ({ name: 'model', run: () => checkModel(files, memorySettings) })),
    { name: 'model files', run: () => checkModelFiles(store, hashes, limit) },
    { name: 'machine', run: checkCondition },
    { name: 'sleep', run: () => checkSleep(process.platform) },
    { name: 'network', run: async () => (await reached).findings },
    { name: 'clock', run: async () => checkClock(known?.clock_skew_ms ?? (await reached).skewMs) },
    { name: 'account', run: known === null ? skippedCheck : async () => checkAccount(known.account, await isReachable()) },
    { name: 'coordinator', run: known === null ? skippedCheck : async () => checkCoordinatorView(known, await isReachable()) },
    { name: 'traffic', run: known === null ? skippedCheck : async () => checkTraffic(known) },
    { name: 'command', run: () => checkCommand(found, process.env.PATH ?? '') },
    {
      name: 'updates',
      run: () =>
        checkUpdates({
          found,
          automatic: config?.update.automatic ?? true,
          findUpdate: updateCheckOf(target, config?.update.channel ?? 'stable', found, url, limit),
        }),
    },
  ];
  return { checks: [...first, ...(await runChecks(checks, CHECK_MS))], status: known };
}

/** Models to check: of the option, else of the daemon's start, else of the store. Null if none is known. */
function modelsOf({ model }: DoctorTarget, status: DaemonStatus | null, store: ModelStore): readonly (CheckedModel | null)[] {
  const entries = entriesOf(store);
  const withProjector = (path: string): CheckedModel => {
    const entry = entries.find((each) => store.path(each) === path);
    return { path, projectorPath: entry === undefined ? adjacentProjectorPath(path) : store.projectorPath(entry) };
  };
  if (model !== null) return [withProjector(model)];
  if (status !== null) return status.model_files.map(withProjector);
  const used = entries.filter(({ use }) => use !== null);
  return used.length > 0 ? used.map((entry) => withProjector(store.path(entry))) : [null];
}

function entriesOf(store: ModelStore): ReturnType<ModelStore['entries']> {
  try {
    return store.entries();
  } catch {
    // Reported by the check of the model files.
    return [];
  }
}

/** Null if the coordinator is unknown, or has no releases for this platform or build. */
function updateCheckOf(
  { dataDir }: DoctorTarget,
  channel: 'stable' | 'canary',
  found: Installation,
  coordinator: string | null,
  signal: AbortSignal,
) {
  const platform = releasePlatform();
  const keys = releaseKeys();
  if (coordinator === null || platform === null || keys.length === 0) return null;
  const prefix = found.kind === 'own' ? found.prefix : null;
  return async () => {
    const machine = { token: await requestSessionToken(dataDir, TOKEN_MS), channel, isCheck: true };
    return checkForUpdate({ coordinator, platform, version: null, keys, signal, machine }, prefix, found.version);
  };
}
