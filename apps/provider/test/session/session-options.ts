import type { Enclave } from '@inference/enclave';
import type { SessionOptions } from '../../src/session/session.js';
import type { FakeCoordinator } from '../support/fake-coordinator.js';

/** A session of a provider without models and jobs. */
export function sessionOptions(coordinator: FakeCoordinator, enclave: Enclave, changes: Partial<SessionOptions> = {}): SessionOptions {
  return {
    url: coordinator.socketUrl,
    enclave,
    registration: {
      agentVersion: '0.0.1',
      hardware: { chip_family: 'M1', cpu_cores: 8, gpu_cores: 8, bandwidth_gbs: 68 },
      models: () => [],
      slots: 1,
    },
    createJobHandler: () => ({ handle: () => {}, frame: () => {}, abandon: () => {} }),
    onRegistered: () => {},
    ...changes,
  };
}
