/** `AgentProcesses`: the processes of one agent, which a supervisor process restarts. For the soak test `agent`. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { OwnSupervisor } from '../../apps/provider/src/service/own-supervisor.js';
import { descendantsOf, isAlive, processTable, waitUntilGone } from '../../test/support/processes.js';

const MAIN = fileURLToPath(new URL('../../apps/provider/dist/main.js', import.meta.url));
/** The constructor of `OwnSupervisor` needs a stop time. Here `OwnSupervisor` only reads the state; the CLI stops the agent. */
const UNUSED_STOP_SECONDS = 0;

export class AgentProcesses {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'soak-agent-'));
  readonly #supervisor = new OwnSupervisor(this.dataDir, UNUSED_STOP_SECONDS);
  /** Command lines of the supervisor and its descendants, as last seen. Survivors of a killed agent stay in the map. */
  readonly #commandByPid = new Map<number, string>();

  /** Writes the settings. `runCommand('start')` starts the agent. */
  constructor(coordinatorUrl: string) {
    const config = `coordinator = "${coordinatorUrl}"\nsimulated_enclave = true\n[models]\nslots = 2\n`;
    writeFileSync(join(this.dataDir, 'config.toml'), config, { mode: 0o600 });
  }

  /** Runs a command of the agent's CLI. Rejects if the command fails. */
  async runCommand(command: 'start' | 'stop' | 'restart'): Promise<void> {
    if (command !== 'start') await this.#readState();
    await promisify(execFile)(process.execPath, [MAIN, command, '--data-dir', this.dataDir, '--manager', 'supervisor']);
  }

  /** Process id of the supervisor; 0 if not running. */
  async supervisorPid(): Promise<number> {
    return (await this.#readState())?.pid ?? 0;
  }

  /** Process id of the daemon; 0 if not running. */
  async daemonPid(): Promise<number> {
    return (await this.#readState())?.child?.pid ?? 0;
  }

  /** Process id of a descendant of the daemon whose command line contains `part`; 0 if not running. */
  async childPid(part: string): Promise<number> {
    const pid = await this.daemonPid();
    // `descendantsOf(0)` would return every process.
    return pid === 0 ? 0 : (descendantsOf(pid).find(({ command }) => command.includes(part))?.pid ?? 0);
  }

  /** Command lines of the processes seen by earlier calls that still run after `deadlineMs`. */
  async leftoverCommands(deadlineMs = 10_000): Promise<string[]> {
    const pids = await waitUntilGone([...this.#commandByPid.keys()], deadlineMs);
    // A new process with a reused process id has another command line.
    const left = processTable().filter(({ pid, command }) => pids.includes(pid) && this.#commandByPid.get(pid) === command);
    return left.map(({ command }) => command);
  }

  /** Reads the supervisor's state, and records the processes below it while they still have their parents. */
  async #readState(): ReturnType<OwnSupervisor['supervisorState']> {
    const state = await this.#supervisor.supervisorState();
    if (state === null) return null;
    const table = processTable();
    const supervisor = table.filter(({ pid }) => pid === state.pid);
    for (const { pid, command } of [...supervisor, ...descendantsOf(state.pid, table)]) this.#commandByPid.set(pid, command);
    return state;
  }

  removeFiles(): void {
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

/** Kills a process. Ignores process id 0. */
export function killProcess(pid: number): void {
  if (pid > 0) process.kill(pid, 'SIGKILL');
}

/** Suspends processes (SIGSTOP) for a time in milliseconds. Ignores process id 0. */
export async function freezeProcesses(pids: readonly number[], ms: number): Promise<void> {
  const running = pids.filter((pid) => pid > 0);
  for (const pid of running) process.kill(pid, 'SIGSTOP');
  await delay(ms);
  for (const pid of running) if (isAlive(pid)) process.kill(pid, 'SIGCONT');
}
