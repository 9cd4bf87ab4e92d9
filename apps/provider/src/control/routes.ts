/** The routes that every daemon has. Parts with routes of their own add them in `daemon.ts`. */

import Type from 'typebox';
import type { DaemonStatus, EnclaveCheck } from './daemon-status.js';
import type { LinkStatus } from './link-status.js';
import { type ControlRoute, get, post } from './route.js';

export interface ControlAnswers {
  status(): Promise<DaemonStatus>;
  enclave(): Promise<EnclaveCheck>;
  /** The owner has signed in or out. */
  link(): Promise<LinkStatus>;
}

export function controlRoutes(answers: ControlAnswers): ControlRoute[] {
  return [
    get('/v1/status', () => answers.status()),
    get('/v1/enclave', () => answers.enclave()),
    post('/v1/link', Type.Object({}), () => answers.link()),
  ];
}
