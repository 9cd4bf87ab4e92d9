/** Routes of the control socket for status, enclave check, settings and stop. `daemon/routes.ts` adds the other routes. */
import Type from 'typebox';
import type { DaemonStatus, EnclaveCheck } from './daemon-status.js';
import { type ControlRoute, get, post } from './route.js';

const NOTHING = Type.Object({}, { additionalProperties: false });

export interface StopAnswer {
  /** Maximum time for running jobs, in milliseconds. */
  readonly drain_ms: number;
}

interface ControlAnswers {
  status(): Promise<DaemonStatus>;
  enclave(): Promise<EnclaveCheck>;
  /** Reads the settings again. */
  reload(): Promise<DaemonStatus['settings']>;
  /** Stops the daemon after its running jobs; responds at once. */
  stop(): Promise<StopAnswer>;
}

export function controlRoutes(answers: ControlAnswers): ControlRoute[] {
  return [
    get('/v1/status', () => answers.status()),
    get('/v1/enclave', () => answers.enclave()),
    post('/v1/reload', NOTHING, () => answers.reload()),
    post('/v1/stop', NOTHING, () => answers.stop()),
  ];
}
