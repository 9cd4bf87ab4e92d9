/**
 * Options of `serve`: command-line flags, else `config.toml`, else defaults. Enrolment and the simulated enclave are on if either says so.
 *
 * The daemon polls `config.toml`, and calls `serveOptions` again with a changed file.
 */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Config, KV_CACHE_TYPES } from '../../config/config.js';
import { configPath, dataDirOf } from '../../config/data-dir.js';
import { modelMemorySettings } from '../../config/model-memory.js';
import type { DaemonOptions } from '../../daemon/daemon-options.js';
import type { KeepAlive } from '../../jobs/serving/keep-alive.js';
import type { KvCacheType } from '../../models/kv-cache-type.js';
import { StartupError } from '../../startup-error.js';
import { modelStoreOf } from '../models-command.js';
import { modelChoices } from './model-choices.js';
import { parseOptions, UsageError } from './owner-options.js';

export const SERVE_USAGE = `serve [--coordinator URL] [--model FILE.gguf[@KEEP]]... [--slots N] [--context N] [--reserve GB]
      [--kv-cache-type f16|q8_0] [--drain SECONDS] [--enrol] [--check] [--service] [--data-dir DIR]
      [--simulated-enclave] [--simulated-management URL] [--simulated-host DIR]`;

/** Default time for running jobs at a stop. `STOP_SECONDS`, after which a service manager kills the daemon, must be longer. */
const DRAIN_SECONDS = 15;

const FLAGS = {
  coordinator: { type: 'string' },
  'data-dir': { type: 'string' },
  model: { type: 'string', multiple: true },
  'simulated-enclave': { type: 'boolean' },
  enrol: { type: 'boolean' },
  'simulated-management': { type: 'string' },
  'simulated-host': { type: 'string' },
  slots: { type: 'string' },
  context: { type: 'string' },
  'kv-cache-type': { type: 'string' },
  drain: { type: 'string' },
  reserve: { type: 'string' },
  check: { type: 'boolean' },
  service: { type: 'boolean' },
} as const;

/** Flags before `config.toml` is applied. Null and undefined: not given. */
export interface ServeFlags {
  readonly dataDir: string;
  readonly configPath: string;
  /** Only validates the settings. */
  readonly check: boolean;
  /** Logs to a file in the data directory. */
  readonly service: boolean;
  readonly socketUrl: string | null;
  readonly models: readonly string[] | undefined;
  readonly simulatedEnclave: boolean;
  /** Whether this Mac may be enrolled in the coordinator's device management. */
  readonly enrol: boolean;
  readonly simulatedManagement: string | null;
  /** Folder with /sys and /proc of a simulated machine. */
  readonly simulatedHost: string | null;
  readonly slots: number | null;
  readonly context: number | null;
  readonly kvCacheType: KvCacheType | null;
  /** Time for running jobs when the daemon stops; {@link DRAIN_SECONDS} by default. */
  readonly drainMs: number;
  /** Bytes of memory reserved for the owner. */
  readonly reserve: number | null;
}

export type ServeOptions = Pick<
  DaemonOptions,
  | 'socketUrl'
  | 'dataDir'
  | 'models'
  | 'simulatedEnclave'
  | 'enrol'
  | 'simulatedManagement'
  | 'slots'
  | 'context'
  | 'kvCacheType'
  | 'simulatedHost'
  | 'drainMs'
  | 'reserve'
  | 'config'
>;

/** Throws {@link UsageError}. */
export function readServeFlags(args: readonly string[]): ServeFlags {
  const { values } = parseOptions(() => parseArgs({ args: [...args], options: FLAGS }), FLAGS);
  const dataDir = dataDirOf(values);
  const isSimulated = values['simulated-enclave'] ?? false;
  return {
    dataDir,
    configPath: configPath(dataDir),
    check: values.check ?? false,
    service: values.service ?? false,
    socketUrl: values.coordinator === undefined ? null : socketUrlOf(values.coordinator),
    models: values.model,
    simulatedEnclave: isSimulated,
    enrol: (values.enrol ?? false) || values['simulated-management'] !== undefined,
    simulatedManagement: simulatedManagement(values['simulated-management'], isSimulated),
    simulatedHost: simulatedHost(values['simulated-host'], isSimulated),
    slots: whole('--slots', values.slots, 1, 256),
    context: whole('--context', values.context, 256, 1 << 24),
    kvCacheType: kvCacheType('--kv-cache-type', values['kv-cache-type']),
    drainMs: 1000 * (whole('--drain', values.drain, 0, 3600) ?? DRAIN_SECONDS),
    reserve: gigabytes('--reserve', values.reserve),
  };
}

/**
 * Merges flags and settings.
 *
 * Throws {@link StartupError} if no coordinator is set, or a demo model is needed but not installed, and {@link UsageError} for an invalid
 * address of the coordinator.
 */
export function serveOptions(flags: ServeFlags, config: Config): ServeOptions {
  const { dataDir, configPath } = flags;
  const socketUrl = flags.socketUrl ?? (config.coordinator === undefined ? null : socketUrlOf(config.coordinator));
  if (socketUrl === null)
    throw new StartupError(`no coordinator is set; run "inference-provider setup", or add coordinator = "https://…" into ${configPath}`);
  const { slots, context, reserve, ...memory } = modelMemorySettings(config);
  return {
    socketUrl,
    dataDir,
    models: modelChoices(flags.models, modelStoreOf(dataDir).store, maxKeepOf(config)),
    simulatedEnclave: flags.simulatedEnclave || config.simulated_enclave,
    enrol: flags.enrol || config.enrolment.enrol,
    simulatedManagement: flags.simulatedManagement,
    simulatedHost: flags.simulatedHost,
    slots: flags.slots ?? slots,
    context: flags.context ?? context,
    kvCacheType: flags.kvCacheType ?? memory.kvCacheType,
    drainMs: flags.drainMs,
    reserve: flags.reserve ?? reserve,
    config,
  };
}

/** Maximum time that an unused model stays in memory. */
function maxKeepOf({ models }: Config): KeepAlive {
  const { keep, idle_minutes: minutes } = models;
  return keep === 'idle' ? { kind: keep, minutes } : { kind: keep };
}

function gigabytes(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!/^\d+(?:\.\d+)?$/.test(text) || value > 4096) throw new UsageError(`${name} must be a number of gigabytes, such as 8.`);
  return value * 1e9;
}

function kvCacheType(name: string, text: string | undefined): KvCacheType | null {
  if (text === undefined) return null;
  const type = KV_CACHE_TYPES.find((each) => each === text);
  if (type === undefined) throw new UsageError(`${name} must be ${KV_CACHE_TYPES.join(' or ')}.`);
  return type;
}

/** Throws {@link UsageError}. */
function socketUrlOf(coordinator: string): string {
  const url = URL.canParse(coordinator) ? new URL(coordinator) : null;
  const scheme = { 'http:': 'ws:', 'https:': 'wss:', 'ws:': 'ws:', 'wss:': 'wss:' }[url?.protocol ?? ''];
  if (url === null || scheme === undefined) throw new UsageError('--coordinator must be an http, https, ws or wss address.');
  return `${scheme}//${url.host}${url.pathname.replace(/\/+$/, '')}/provider/v1/socket`;
}

function simulatedManagement(text: string | undefined, simulatedEnclave: boolean): string | null {
  if (text === undefined) return null;
  if (!simulatedEnclave) throw new UsageError('--simulated-management is for a provider with --simulated-enclave.');
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new UsageError('--simulated-management must be an http or https address.');
  return text.replace(/\/+$/, '');
}

function simulatedHost(folder: string | undefined, simulatedEnclave: boolean): string | null {
  if (folder === undefined) return null;
  if (!simulatedEnclave) throw new UsageError('--simulated-host is for a provider with --simulated-enclave.');
  return resolve(folder);
}

function whole(name: string, text: string | undefined, min: number, max: number): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < min || value > max) throw new UsageError(`${name} must be a whole number from ${min} to ${max}.`);
  return value;
}
