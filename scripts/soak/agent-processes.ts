/** `AgentProcesses`: an agent under its own supervisor, controlled with the owner's commands. For the soak test `agent`. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { OwnSupervisor } from '../../apps/provider/src/service/own-supervisor.js';
import { descendantsOf, isAlive } from '../../test/support/processes.js';

const MAIN = fileURLToPath(new URL('../../apps/provider/dist/main.js', import.meta.url));
/** Maximum time for the agent to stop before the supervisor kills the process. */
const STOP_SECONDS = 25;

export class AgentProcesses {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'soak-agent-'));
  readonly #supervisor = new OwnSupervisor(this.dataDir, STOP_SECONDS);

  /** Writes the settings. `runCommand('start')` starts the agent. */
  constructor(coordinatorUrl: string) {
    const config = `coordinator = "${coordinatorUrl}"\nsimulated_enclave = true\n[models]\nslots = 2\n`;
    writeFileSync(join(this.dataDir, 'config.toml'), config, { mode: 0o600 });
  }

  /** Runs a command of the agent's CLI, such as `start`. Rejects if the command fails. */
  async runCommand(command: 'start' | 'stop' | 'restart'): Promise<void> {
    await promisify(execFile)(process.execPath, [MAIN, command, '--data-dir', this.dataDir, '--manager', 'supervisor']);
  }

  /** Process id of the supervisor; 0 if not running. */
  async supervisorPid(): Promise<number> {
    return (await this.#supervisor.supervisorState())?.pid ?? 0;
  }

  /** Process id of the daemon; 0 if not running. */
  async agentPid(): Promise<number> {
    return (await this.#supervisor.supervisorState())?.child?.pid ?? 0;
  }

  /** Process id of the daemon's child whose command line contains `part`; 0 if not running. */
  async childPid(part: string): Promise<number> {
    const pid = await this.agentPid();
    // `descendantsOf(0)` would return every process.
    return pid === 0 ? 0 : (descendantsOf(pid).find(({ command }) => command.includes(part))?.pid ?? 0);
  }

  /** Commands of processes that outlived the agent. */
  leftoverCommands(): string[] {
    return descendantsOf(process.pid)
      .filter(({ command }) => command.includes(this.dataDir))
      .map(({ command }) => command);
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
