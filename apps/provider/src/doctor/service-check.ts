/** Whether something keeps the daemon running, over crashes and logins. */
import type { DaemonStatus } from '../control/daemon-status.js';
import type { ServiceManager } from '../service/service.js';
import { type Finding, note, ok, problem, skipped } from './check.js';

export async function checkService(manager: ServiceManager, label: string, status: DaemonStatus | null): Promise<Finding[]> {
  const state = await manager.state(label);
  switch (state.kind) {
    case 'running':
      if (status === null) return [problem(`${manager.name} keeps it running, and it gives no answer`, 'Run: inference-provider restart')];
      return [ok(`${manager.name} keeps it running`)];
    case 'waiting': {
      const how = state.lastExit === null ? '' : ` (${state.lastExit})`;
      return [
        problem(`it ends again and again${how}, and ${manager.name} starts it again`, 'What it says: inference-provider logs --crash'),
      ];
    }
    case 'not_running':
      if (status === null) return [skipped('it was not started as a service')];
      return [
        note('it was started by hand: nothing starts it again after a crash or a login', 'End it, then run: inference-provider start'),
      ];
  }
}
