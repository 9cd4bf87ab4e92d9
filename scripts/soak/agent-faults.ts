/** Faults of the soak test `agent`, and `FaultSchedule`, the order of the faults in a run. */
import { type AgentProcesses, freezeProcesses, killProcess } from './agent-processes.js';

/** Minimum interval between engine kills. The agent disables a model after three engine deaths in ten minutes. */
const MIN_ENGINE_KILL_INTERVAL_MS = 5.5 * 60_000;

export interface Fault {
  readonly name: string;
  /** Whether the daemon dies. Memory is measured in the second half of a run, so these faults are then excluded. */
  readonly killsDaemon: boolean;
  readonly inject: () => Promise<void>;
  /** Minimum time between two faults of this name, in milliseconds. */
  readonly minIntervalMs?: number;
  /** Maximum duration of the fault, in milliseconds. Short runs exclude long faults. */
  readonly maxDurationMs?: number;
}

export interface FaultDeps {
  readonly processes: AgentProcesses;
  readonly coordinatorPid: () => number;
  /** Returns a number from 0 up to, not including, 1. */
  readonly random: () => number;
}

export function deadlyFaults({ processes }: FaultDeps): readonly Fault[] {
  return [
    { name: 'agent killed', killsDaemon: true, inject: async () => killProcess(await processes.daemonPid()) },
    {
      name: 'supervisor killed, started by its owner',
      killsDaemon: true,
      inject: async () => {
        killProcess(await processes.supervisorPid());
        await processes.runCommand('start');
      },
    },
    { name: 'restart', killsDaemon: true, inject: () => processes.runCommand('restart') },
  ];
}

/** Faults that the daemon survives: a killed engine, enclave helper or coordinator, and frozen processes. */
export function survivableFaults({ processes, coordinatorPid, random }: FaultDeps): readonly Fault[] {
  const between = (min: number, max: number): number => min + random() * (max - min);
  return [
    {
      name: 'engine killed',
      killsDaemon: false,
      minIntervalMs: MIN_ENGINE_KILL_INTERVAL_MS,
      inject: async () => killProcess(await processes.childPid('engine/process')),
    },
    { name: 'enclave helper killed', killsDaemon: false, inject: async () => killProcess(await processes.childPid('simulated/main')) },
    {
      name: 'agent asleep, briefly',
      killsDaemon: false,
      maxDurationMs: 5_000,
      inject: async () => freezeProcesses([await processes.daemonPid()], between(500, 5_000)),
    },
    {
      name: 'agent asleep, until it is given up',
      killsDaemon: false,
      maxDurationMs: 45_000,
      inject: async () => freezeProcesses([await processes.daemonPid()], between(20_000, 45_000)),
    },
    { name: 'coordinator killed', killsDaemon: false, inject: async () => killProcess(coordinatorPid()) },
    {
      name: 'coordinator frozen',
      killsDaemon: false,
      maxDurationMs: 40_000,
      inject: () => freezeProcesses([coordinatorPid()], between(500, 40_000)),
    },
    {
      name: 'both frozen',
      killsDaemon: false,
      maxDurationMs: 20_000,
      inject: async () => freezeProcesses([await processes.daemonPid(), coordinatorPid()], between(1_000, 20_000)),
    },
  ];
}

/** Draws faults in rounds. Each round has every allowed fault once, in random order. */
export class FaultSchedule {
  readonly #deadly: readonly Fault[];
  readonly #survivable: readonly Fault[];
  readonly #random: () => number;
  #pending: Fault[] = [];
  readonly #injectedAt = new Map<string, number>();

  constructor(deadly: readonly Fault[], survivable: readonly Fault[], random: () => number) {
    this.#deadly = deadly;
    this.#survivable = survivable;
    this.#random = random;
  }

  /** Draws and removes the next fault of the round. Returns null if the fault is deadly or too early; the caller draws again. */
  draw(now: number, allowsDeadly: boolean): Fault | null {
    if (this.#pending.length === 0) {
      this.#pending = shuffle([...this.#survivable, ...(allowsDeadly ? this.#deadly : [])], this.#random);
    }
    const fault = this.#pending.pop();
    if (fault === undefined || (fault.killsDaemon && !allowsDeadly)) return null;
    const lastAt = this.#injectedAt.get(fault.name) ?? Number.NEGATIVE_INFINITY;
    if (fault.minIntervalMs !== undefined && now - lastAt < fault.minIntervalMs) return null;
    this.#injectedAt.set(fault.name, now);
    return fault;
  }
}

function shuffle<Value>(values: Value[], random: () => number): Value[] {
  for (let index = values.length - 1; index > 0; index--) {
    const other = Math.floor(random() * (index + 1));
    [values[index], values[other]] = [values[other] as Value, values[index] as Value];
  }
  return values;
}
