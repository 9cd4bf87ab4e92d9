import { expect, it } from 'vitest';
import { unitText } from '../../src/cli/foreign-daemon.js';
import { foreignDaemon } from '../../src/service/foreign-daemon.js';
import type { ServiceState } from '../../src/service/service.js';

const daemon = { pid: 20 };
const service = (pid: number | null): ServiceState => ({ kind: 'running', pid });
const unitOf = () => 'inference-provider.service';

it('tells a daemon of the service from one of an owner’s unit, also of the same name, and from one started by hand', () => {
  expect(foreignDaemon(null, service(20), unitOf)).toBeNull();
  expect(foreignDaemon(daemon, service(20), unitOf)).toBeNull();
  // launchd and the supervisor start no systemd unit.
  expect(foreignDaemon(daemon, service(null), () => null)).toBeNull();
  // The service waits for the data directory, which the owner's unit uses.
  expect(foreignDaemon(daemon, service(7), unitOf)).toEqual({ pid: 20, unit: 'inference-provider.service' });
  expect(foreignDaemon(daemon, { kind: 'waiting', lastExit: null }, unitOf)).toEqual({ pid: 20, unit: 'inference-provider.service' });
  expect(foreignDaemon(daemon, { kind: 'not_running' }, () => null)).toEqual({ pid: 20, unit: null });
});

it('names the command for a unit, if its name is known', () => {
  expect(unitText('restart', 'own.service', 20)).toContain('sudo systemctl restart own.service');
  expect(unitText('stop', 'a unit', 20)).toMatch(/Stop the unit instead\. To find its name, run: systemctl status 20$/);
});
