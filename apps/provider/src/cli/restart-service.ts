/** Has the service manager start the daemon anew, after its running jobs. */
import { labelOf, serviceDefinition, serviceManager } from '../service/choose.js';

/** Whether a service manager keeps it; one that was started by hand is left alone. Throws ServiceError. */
export async function restartService(dataDir: string): Promise<boolean> {
  const manager = await serviceManager(dataDir, undefined);
  if ((await manager.state(labelOf(dataDir))).kind === 'not_running') return false;
  await manager.restart(serviceDefinition(dataDir));
  return true;
}
