/** Runs the coordinator program with the deadlines in the environment variable `TIMINGS`, JSON of `CoordinatorTimings`. */
import { startApp } from '../../../apps/coordinator/dist/app.js';
import { readConfig } from '../../../apps/coordinator/dist/config/config.js';
import { createLog } from '../../../apps/coordinator/dist/log.js';
import type { CoordinatorTimings } from './timings.js';

const config = readConfig(process.env);
const timings = JSON.parse(process.env.TIMINGS ?? '{}') as CoordinatorTimings;
const app = await startApp({ config, log: createLog(config.logLevel, process.stdout), ...timings });
process.send?.({ address: app.address });
const end = (): void => void app.close(0).then(() => process.exit(0));
process.on('SIGTERM', end);
process.on('disconnect', () => process.exit(1));
