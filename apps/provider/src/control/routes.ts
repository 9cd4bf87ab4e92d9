/** The routes that every daemon has. Parts with routes of their own add them in `daemon.ts`. */
import type { DaemonStatus, EnclaveCheck } from './daemon-status.js';
import { type ControlRoute, get } from './route.js';

export interface ControlAnswers {
  status(): Promise<DaemonStatus>;
  enclave(): Promise<EnclaveCheck>;
}

export function controlRoutes(answers: ControlAnswers): ControlRoute[] {
  return [get('/v1/status', () => answers.status()), get('/v1/enclave', () => answers.enclave())];
}
