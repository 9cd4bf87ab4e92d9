/** A running daemon that the service of `start` does not run: by a systemd unit of the owner, or by hand. */
import type { DaemonStatus } from '../control/daemon-status.js';
import type { ServiceManager, ServiceState } from '../service/service.js';
import { systemdUnitOf } from '../service/systemd-unit-of.js';

export interface ForeignDaemon {
  readonly pid: number;
  /** Systemd unit of the owner; null: started by hand. */
  readonly unit: string | null;
}

/** Null: no daemon runs, or the service runs the daemon. */
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

/** Sentence that tells the owner to stop or restart the unit. */
export function unitText(verb: 'stop' | 'restart', unit: string, pid: number): string {
  const instead = verb === 'stop' ? 'Stop the unit instead' : 'Restart the unit instead';
  const running = `The provider (process ${pid}) runs under systemd, as ${unit}. ${instead}`;
  if (!unit.endsWith('.service')) return `${running}. To find its name, run: systemctl status ${pid}`;
  return `${running}: sudo systemctl ${verb} ${unit} (or, for a unit of your user: systemctl --user ${verb} ${unit})`;
}

/** Output of `start` or `restart` that leaves a foreign daemon running. */
export function refusalOutput(
  { pid, unit }: ForeignDaemon,
  outcome: 'not_started' | 'not_restarted',
  problem: string,
  { json, manager }: { readonly json: boolean; readonly manager: Pick<ServiceManager, 'name'> },
): string {
  return json ? JSON.stringify({ manager: manager.name, outcome, pid, unit, problem, advice: [] }, null, 2) : problem;
}
