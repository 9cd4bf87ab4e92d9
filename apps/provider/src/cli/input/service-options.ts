/** Options of `start`, `stop` and `restart`: data directory and service manager. Also asks whether a daemon answers. */
import { ControlError, requestStatus } from '../../control/control-client.js';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { serviceManager } from '../../service/choose-manager.js';
import type { ServiceManager } from '../../service/service.js';
import { ownerOptions } from './owner-options.js';

const SERVICE_OPTIONS = { manager: { type: 'string' } } as const;

const ANSWER_MS = 10_000;

export interface ServiceCommand {
  readonly dataDir: string;
  readonly json: boolean;
  readonly manager: ServiceManager;
}

/** Throws UsageError, ServiceError. */
export async function serviceCommand(args: readonly string[]): Promise<ServiceCommand> {
  const { dataDir, json, values } = ownerOptions(args, SERVICE_OPTIONS);
  const requested = typeof values.manager === 'string' ? values.manager : undefined;
  return { dataDir, json, manager: await serviceManager(dataDir, requested) };
}

/** Status of a daemon, however started. Null if none answers. */
export async function answeringDaemon(dataDir: string): Promise<DaemonStatus | null> {
  try {
    return await requestStatus(dataDir, ANSWER_MS);
  } catch (error) {
    if (error instanceof ControlError) return null;
    throw error;
  }
}
