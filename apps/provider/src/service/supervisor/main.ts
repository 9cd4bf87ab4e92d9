/** Entry file of the supervisor process, one per data directory. Argument: the service definition as JSON. */
import Type from 'typebox';
import { AlreadyRunningError, ControlServer } from '../../control/control-server.js';
import { get, post } from '../../control/route.js';
import type { ServiceDefinition } from '../service.js';
import { Supervised } from './supervise.js';

const definition = JSON.parse(process.argv[2] ?? '') as ServiceDefinition;
const { command, environment, dataDir, outputFile, stopSeconds } = definition;
let supervised: Supervised | null = null;

const stop = async (): Promise<object> => {
  await supervised?.stop();
  return {};
};
const routes = [
  get('/v1/state', async () => ({ pid: process.pid, command, child: supervised?.state ?? null })),
  post('/v1/stop', Type.Object({}), stop),
];
try {
  const server = await ControlServer.open(dataDir, routes, 'supervisor.sock');
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop());
  // The terminal that started the supervisor may close.
  process.on('SIGHUP', () => {});
  supervised = new Supervised({ command, environment, directory: dataDir, outputFile, stopMs: stopSeconds * 1000 });
  await supervised.ended;
  await server.close();
  process.exit(0);
} catch (error) {
  process.exit(error instanceof AlreadyRunningError ? 0 : 1);
}
