/** `Launchd`: the service manager of macOS, with a plist in ~/Library/LaunchAgents. Runs `launchctl` (launchctl(1)). */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeDefinitionFile } from './definition-file.js';
import type { RunTool, ToolResult } from './run-tool.js';
import { type ServiceDefinition, ServiceError, type ServiceManager, type ServiceState } from './service.js';

interface LaunchdOptions {
  readonly run: RunTool;
  readonly uid: number;
  /** ~/Library/LaunchAgents */
  readonly folder: string;
  /** Content of the plist. Default: `launchdPlist`. */
  readonly plist?: (definition: ServiceDefinition) => Promise<string>;
  /** Polling interval while a service stops. */
  readonly pollMs?: number;
}

/** Exit codes of `launchctl print` for a service that is not loaded: 113; 3 or 64 in older versions. */
const NOT_LOADED = [113, 3, 64];
/** Exit code of `bootout` for a service that is still stopping (operation now in progress). */
const IN_PROGRESS = 36;
const MAX_STOP_MS = 60_000;

export class Launchd implements ServiceManager {
  readonly name = 'launchd';

  constructor(private readonly options: LaunchdOptions) {}

  async start(definition: ServiceDefinition): Promise<'started' | 'already_running'> {
    const { label } = definition;
    const changed = await this.#write(definition);
    const state = await this.#print(label);
    if (state !== null && !changed) {
      if (state.kind === 'running') return 'already_running';
      await this.#runLaunchctl(['kickstart', this.#target(label)]);
      return 'started';
    }
    if (state !== null) await this.#bootOut(label);
    await this.#runLaunchctl(['enable', this.#target(label)]);
    await this.#runLaunchctl(['bootstrap', this.#domain, this.#plist(label)]);
    return 'started';
  }

  async stop(label: string): Promise<'stopped' | 'was_not_running'> {
    const state = await this.#print(label);
    // Prevents that the next login starts the service.
    await this.#runLaunchctl(['disable', this.#target(label)]);
    if (state === null) return 'was_not_running';
    await this.#bootOut(label);
    return state.kind === 'running' ? 'stopped' : 'was_not_running';
  }

  async restart(definition: ServiceDefinition): Promise<void> {
    const { label } = definition;
    const changed = await this.#write(definition);
    const state = await this.#print(label);
    if (state === null || changed) {
      await this.start(definition);
      return;
    }
    if (state.kind === 'running') {
      // SIGTERM lets jobs finish; `kickstart -k` alone would kill the jobs.
      await this.#launchctl(['kill', 'SIGTERM', this.#target(label)]);
      await this.#waitUntil(label, (now) => now?.kind !== 'running');
    }
    await this.#runLaunchctl(['kickstart', '-k', this.#target(label)]);
  }

  async remove(label: string): Promise<void> {
    if ((await this.#print(label)) !== null) await this.#bootOut(label);
    rmSync(this.#plist(label), { force: true });
  }

  async state(label: string): Promise<ServiceState> {
    return (await this.#print(label)) ?? { kind: 'not_running' };
  }

  async advice(): Promise<readonly string[]> {
    return ['Starts automatically at login. Runs only while you are logged in.'];
  }

  get #domain(): string {
    return `gui/${this.options.uid}`;
  }

  #target(label: string): string {
    return `${this.#domain}/${label}`;
  }

  #plist(label: string): string {
    return join(this.options.folder, `${label}.plist`);
  }

  /** Returns whether the plist changed. */
  async #write(definition: ServiceDefinition): Promise<boolean> {
    return writeDefinitionFile(this.#plist(definition.label), await (this.options.plist ?? launchdPlist)(definition));
  }

  /** Null if launchd does not know the service. */
  async #print(label: string): Promise<ServiceState | null> {
    const result = await this.#launchctl(['print', this.#target(label)]);
    if (result.code === 0) return parseLaunchctlPrint(result.stdout);
    if (NOT_LOADED.includes(result.code)) return null;
    throw launchctlError('print', result);
  }

  async #bootOut(label: string): Promise<void> {
    const result = await this.#launchctl(['bootout', this.#target(label)]);
    if (result.code !== 0 && result.code !== IN_PROGRESS && !NOT_LOADED.includes(result.code)) throw launchctlError('bootout', result);
    await this.#waitUntil(label, (now) => now === null);
  }

  async #waitUntil(label: string, isSo: (state: ServiceState | null) => boolean): Promise<void> {
    const deadline = performance.now() + MAX_STOP_MS;
    while (!isSo(await this.#print(label))) {
      if (performance.now() > deadline) throw new ServiceError('the provider did not stop in time; check its log, or log out and back in');
      await delay(this.options.pollMs ?? 200);
    }
  }

  async #runLaunchctl(args: readonly string[]): Promise<void> {
    const result = await this.#launchctl(args);
    if (result.code !== 0) throw launchctlError(args[0] ?? '', result);
  }

  #launchctl(args: readonly string[]): Promise<ToolResult> {
    return this.options.run('launchctl', args);
  }
}

/** Parses `launchctl print` of one service. The output's layout is undocumented, so only a few fields are read. */
export function parseLaunchctlPrint(text: string): ServiceState {
  const value = (name: string): string | null => new RegExp(`^\\s*${name} = (.*)$`, 'm').exec(text)?.[1]?.trim() ?? null;
  const pid = Number(value('pid'));
  if (value('state') === 'running') return { kind: 'running', pid: pid > 0 ? pid : null };
  const lastExit = value('last exit code');
  const hasFailed = lastExit !== null && lastExit !== '(never exited)' && !/^0(\D|$)/.test(lastExit);
  return hasFailed ? { kind: 'waiting', lastExit } : { kind: 'not_running' };
}

function launchctlError(verb: string, { code, stderr, stdout }: ToolResult): ServiceError {
  const message = (stderr || stdout).trim().split('\n')[0] ?? '';
  return new ServiceError(`launchctl ${verb} was refused (${code})${message === '' ? '' : `: ${message}`}`);
}

/** Seconds between two starts of a crashing service. launchd has no exponential backoff. */
const THROTTLE_SECONDS = 10;

export async function launchdPlist(definition: ServiceDefinition): Promise<string> {
  const { label, command, environment, outputFile, dataDir, stopSeconds } = definition;
  const { build } = await import('./property-list.js');
  return build({
    Label: label,
    ProgramArguments: [...command],
    EnvironmentVariables: { ...environment },
    WorkingDirectory: dataDir,
    RunAtLoad: true,
    // Exit code 0 is a requested stop; any other exit restarts the service.
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: THROTTLE_SECONDS,
    ExitTimeOut: stopSeconds,
    // `Background` would exclude the performance cores.
    ProcessType: 'Standard',
    Umask: 0o077,
    // Core dumps would contain prompts and keys.
    SoftResourceLimits: { Core: 0 },
    HardResourceLimits: { Core: 0 },
    StandardOutPath: outputFile,
    StandardErrorPath: outputFile,
  });
}
