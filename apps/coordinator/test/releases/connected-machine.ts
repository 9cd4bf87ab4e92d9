import type { ConnectedMachine } from '../../src/releases/connected-machine.js';

/** A machine of version 1.0.0 that is connected and serves the model `m`. */
export const connected = (name: string, change: Partial<ConnectedMachine> = {}): ConnectedMachine => ({
  provider_id: name as ConnectedMachine['provider_id'],
  version: '1.0.0',
  chip_family: 'M4',
  models: ['m'],
  slots: 1,
  account_id: null,
  trust: 2,
  is_blocked: false,
  is_away: false,
  is_restricted: false,
  speed_model: null,
  speed: null,
  ...change,
});
