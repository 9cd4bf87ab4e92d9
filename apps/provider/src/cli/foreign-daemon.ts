/** Texts about a daemon that runs outside the service of `start`. */
import type { ForeignDaemon } from '../service/foreign-daemon.js';
import type { ServiceManager } from '../service/service.js';

/** Tells the owner to stop or restart the unit. */
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
