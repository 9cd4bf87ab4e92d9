/** The daemon's status at the start, and conversions of host conditions and ended jobs for status and notifications. */
import { JOB_FAILURES } from '@inference/protocol';
import { configPath } from '../config/data-dir.js';
import type { DaemonStatus } from '../control/daemon-status.js';
import { type HostCondition, NORMAL_CONDITION } from '../host/condition/condition.js';
import type { JobEvent, MachineState } from '../jobs/session-jobs.js';
import { agentVersion } from '../version.js';
import { coordinatorUrl } from './coordinator-view.js';

export interface StatusFacts {
  readonly dataDir: string;
  readonly socketUrl: string;
  readonly simulatedEnclave: boolean;
  readonly models: readonly { readonly path: string }[];
}

/** `Daemon.status` replaces the values that are known later. */
export function startingStatus(options: StatusFacts, startedAt: number): DaemonStatus {
  return {
    version: agentVersion(),
    pid: process.pid,
    started_at: startedAt,
    state: 'starting',
    data_dir: options.dataDir,
    coordinator: coordinatorUrl(options.socketUrl),
    simulated_enclave: options.simulatedEnclave,
    provider_id: null,
    connection: { state: 'not_connected', since: startedAt, problem: null, retry_at: null },
    clock_skew_ms: null,
    trust: null,
    account: { state: 'waiting', account_name: null, reason: null, remedy: null },
    engine: 'starting',
    models: [],
    model_files: options.models.map(({ path }) => path),
    slots: 0,
    availability: null,
    running_jobs: 0,
    jobs: { completed: 0, failed: 0, cancelled: 0 },
    host: machineState(NORMAL_CONDITION),
    settings: { path: configPath(options.dataDir), read_at: startedAt, problem: null, needs_restart: [] },
    hardening: { core_dumps: 'unknown', engine_network: 'none', engine_network_problem: 'the provider is still starting' },
    coordinator_view: null,
    coordinator_problem: 'the provider is still starting',
  };
}

export function machineState({ thermal, memoryPressure, power }: HostCondition): Required<MachineState> {
  return { thermal, memory_pressure: memoryPressure, power };
}

/** Event for notifications. Null for a job that failed without this machine's fault. */
export function notifiedOutcome({ end }: JobEvent): 'job_completed' | 'job_failed' | null {
  if (end.kind === 'completed') return 'job_completed';
  return end.kind === 'failed' && JOB_FAILURES[end.failure.code].blame === 'provider' ? 'job_failed' : null;
}

/** A refused job counts as failed. */
export function outcomeOf({ end }: JobEvent): 'completed' | 'failed' | 'cancelled' {
  if (end.kind === 'completed') return 'completed';
  if (end.kind === 'refused') return 'failed';
  return end.failure.code === 'cancelled' ? 'cancelled' : 'failed';
}
