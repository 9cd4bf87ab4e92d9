/** `foreignDaemon` finds out whether a daemon runs outside the service of `start`: under a systemd unit of the owner, or by hand. */
import type { DaemonStatus } from '../control/daemon-status.js';
import type { ServiceState } from './service.js';
import { systemdUnitOf } from './systemd-unit-of.js';

export interface ForeignDaemon {
  readonly pid: number;
  /** Systemd unit of the owner; null: started by hand. */
  readonly unit: string | null;
}

/** Null if no daemon runs, or if the service, whose state is `state`, runs it. */
export function foreignDaemon(
  running: Pick<DaemonStatus, 'pid'> | null,
  state: ServiceState,
  unitOf: (pid: number) => string | null = systemdUnitOf,
): ForeignDaemon | null {
  if (running === null) return null;
  const { pid } = running;
  const unit = unitOf(pid);
  // A unit's first process is the main process of the service, if the unit is ours. A unit of the owner may have the same name.
  const isOfService = state.kind === 'running' && (unit === null || state.pid === pid);
  return isOfService ? null : { pid, unit };
}
