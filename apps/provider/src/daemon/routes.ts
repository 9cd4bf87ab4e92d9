/** `daemonRoutes`: routes of the control socket, by which commands ask and change the daemon. */
import Type from 'typebox';
import { availabilityRoutes } from '../control/availability-routes.js';
import { modelsRoutes } from '../control/models-routes.js';
import { ControlRefusal, type ControlRoute, get, post } from '../control/route.js';
import { controlRoutes } from '../control/routes.js';
import { systemProblem } from '../files/system-error.js';
import type { Daemon } from './daemon.js';
import type { DaemonOptions } from './daemon-options.js';
import { startingStatus } from './status.js';

/** @param running Null while the daemon starts, when pauses and changes of models are refused. */
export function daemonRoutes(options: DaemonOptions, startedAt: number, running: () => Daemon | null): ControlRoute[] {
  const starting = () => startingStatus(options, startedAt);
  const required = (): Daemon => {
    const daemon = running();
    if (daemon === null) throw new ControlRefusal('starting', 'the provider is still starting; try again in a moment');
    return daemon;
  };
  return [
    ...controlRoutes({
      status: async () => running()?.status() ?? starting(),
      enclave: async () => running()?.checkEnclave() ?? { usable: false, kind: null, problem: 'the provider is still starting' },
      reload: async () => running()?.reload() ?? starting().settings,
      stop: async () => {
        options.onStop();
        return { drain_ms: options.drainMs };
      },
    }),
    // Commands of the agent use the token to query the coordinator in the name of this machine.
    get('/v1/session-token', async () => ({ token: running()?.sessionToken ?? null })),
    ...modelsRoutes(() => required().reloadModels()),
    ...availabilityRoutes({
      availability: () => running()?.availability ?? null,
      setPause: (pause) => {
        const daemon = required();
        try {
          daemon.setPause(pause);
        } catch (error) {
          throw new ControlRefusal(
            'not_kept',
            `the change applies now, but could not be saved and will be lost at a restart: ${systemProblem(error) ?? error}`,
          );
        }
      },
    }),
    // Called after `login` and `logout`.
    post(
      '/v1/link',
      Type.Object({}, { additionalProperties: false }),
      async () => (await running()?.signInChanged()) ?? starting().account,
    ),
  ];
}
