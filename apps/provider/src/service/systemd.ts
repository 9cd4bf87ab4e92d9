/** `Systemd`: the service manager of most Linux systems, with a unit of the user. Runs `systemctl --user` (systemctl(1)). */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { writeDefinitionFile } from './definition-file.js';
import type { RunTool, ToolResult } from './run-tool.js';
import { type ServiceDefinition, ServiceError, type ServiceManager, type ServiceState } from './service.js';

interface SystemdOptions {
  readonly run: RunTool;
  readonly user: string;
  /** ~/.config/systemd/user */
  readonly folder: string;
}

const SHOWN_PROPERTIES = ['ActiveState', 'SubState', 'MainPID', 'Result', 'ExecMainStatus'];

export class Systemd implements ServiceManager {
  readonly name = 'systemd';

  constructor(private readonly options: SystemdOptions) {}

  async start(definition: ServiceDefinition): Promise<'started' | 'already_running'> {
    const changed = await this.#write(definition);
    const unit = unitOf(definition.label);
    const state = await this.state(definition.label);
    await this.#runSystemctl(['enable', unit]);
    if (state.kind === 'running' && !changed) return 'already_running';
    // Not `start`, which would neither apply a changed unit nor end the wait for a delayed restart.
    await this.#runSystemctl(['restart', unit]);
    return 'started';
  }

  async stop(label: string): Promise<'stopped' | 'was_not_running'> {
    const unit = unitOf(label);
    const state = await this.state(label);
    const { stdout } = await this.#systemctl(['show', '--property=LoadState', unit]);
    if (!stdout.includes('LoadState=loaded')) return 'was_not_running';
    await this.#runSystemctl(['disable', '--now', unit]);
    return state.kind === 'running' ? 'stopped' : 'was_not_running';
  }

  async restart(definition: ServiceDefinition): Promise<void> {
    await this.#write(definition);
    await this.#runSystemctl(['enable', unitOf(definition.label)]);
    await this.#runSystemctl(['restart', unitOf(definition.label)]);
  }

  async remove(label: string): Promise<void> {
    await this.stop(label);
    rmSync(this.#path(label), { force: true });
    await this.#runSystemctl(['daemon-reload']);
  }

  async state(label: string): Promise<ServiceState> {
    const result = await this.#systemctl(['show', `--property=${SHOWN_PROPERTIES.join(',')}`, unitOf(label)]);
    if (result.code !== 0) throw systemctlError('show', result);
    return parseSystemctlShow(result.stdout);
  }

  async advice(): Promise<readonly string[]> {
    const { code, stdout } = await this.options.run('loginctl', ['show-user', this.options.user, '--property=Linger']);
    if (code === 0 && stdout.includes('Linger=yes')) return ['Starts automatically at boot.'];
    return [`Runs only while you are logged in. To start at boot: loginctl enable-linger ${this.options.user}`];
  }

  #path(label: string): string {
    return join(this.options.folder, unitOf(label));
  }

  /** Returns whether the unit changed. */
  async #write(definition: ServiceDefinition): Promise<boolean> {
    if (!writeDefinitionFile(this.#path(definition.label), systemdUnit(definition))) return false;
    await this.#runSystemctl(['daemon-reload']);
    return true;
  }

  async #runSystemctl(args: readonly string[]): Promise<void> {
    const result = await this.#systemctl(args);
    if (result.code !== 0) throw systemctlError(args[0] ?? '', result);
  }

  #systemctl(args: readonly string[]): Promise<ToolResult> {
    return this.options.run('systemctl', ['--user', ...args]);
  }
}

function unitOf(label: string): string {
  return `${label}.service`;
}

/** Parses the output of `systemctl show --property=…`. */
export function parseSystemctlShow(text: string): ServiceState {
  const values = new Map(text.split('\n').map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
  const pid = Number(values.get('MainPID'));
  const state = values.get('ActiveState');
  // `failed` precedes a delayed restart, and remains after a stop that exceeded its time.
  if (values.get('SubState') === 'auto-restart' || values.get('SubState') === 'auto-restart-queued' || state === 'failed') {
    return { kind: 'waiting', lastExit: `${values.get('Result') ?? 'unknown'} (${values.get('ExecMainStatus') ?? '?'})` };
  }
  if (state === 'active' || state === 'activating' || state === 'reloading') return { kind: 'running', pid: pid > 0 ? pid : null };
  return { kind: 'not_running' };
}

function systemctlError(verb: string, { code, stderr, stdout }: ToolResult): ServiceError {
  const message = (stderr || stdout).trim().split('\n')[0] ?? '';
  return new ServiceError(`systemctl --user ${verb} was refused (${code})${message === '' ? '' : `: ${message}`}`);
}

/** Text of the user unit (systemd.service(5), systemd.exec(5)). Before systemd 254, restarts are always two seconds apart. */
export function systemdUnit({ command, environment, outputFile, dataDir, stopSeconds }: ServiceDefinition): string {
  return `[Unit]
Description=Inference provider
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${command.map((word) => quote(word).replaceAll('$', '$$$$')).join(' ')}
WorkingDirectory=${path(dataDir)}
${Object.entries(environment)
  .map(([name, value]) => `Environment=${quote(`${name}=${value}`)}`)
  .join('\n')}
StandardOutput=append:${path(outputFile)}
StandardError=inherit
# Exit code 0 is a requested stop. After a failure, the service restarts with a delay that grows to five minutes.
Restart=on-failure
RestartSec=2
RestartSteps=8
RestartMaxDelaySec=300
# SIGTERM goes to the daemon, which ends its children. Processes that remain after its exit or the timeout are killed.
KillMode=mixed
TimeoutStopSec=${stopSeconds}
# Core dumps would contain prompts and keys.
LimitCORE=0
UMask=0077
# Only settings that work in a user unit on every system: without namespaces.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
`;
}

/** Quotes a word of a command line or assignment, and escapes specifiers (%). */
function quote(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('\n', '\\n');
  return `"${escaped}"`;
}

/** A path extends to the end of its line, so only specifiers are escaped. */
function path(text: string): string {
  return text.replaceAll('%', '%%');
}
