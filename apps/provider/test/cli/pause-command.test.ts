/** `pause until` uses the time zone of the schedule. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Temporal } from 'temporal-polyfill';
import { expect, test } from 'vitest';
import { pauseCommand } from '../../src/cli/commands/pause.js';
import { availabilityRoutes } from '../../src/control/availability-routes.js';
import { ControlServer } from '../../src/control/control-server.js';

test.each(['Pacific/Kiritimati', 'Pacific/Pago_Pago'])("the time of day uses the settings' zone: %s", async (zone) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'pause-'));
  writeFileSync(join(dataDir, 'config.toml'), `[availability]\ntime_zone = "${zone}"\n`);
  const asked: unknown[] = [];
  const routes = availabilityRoutes({ availability: () => null, setPause: (pause) => void asked.push(pause?.until) });
  const server = await ControlServer.open(dataDir, routes);
  expect(await pauseCommand.run(['until', '18:00', '--data-dir', dataDir])).toBe(0);
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
  const shown = Temporal.Instant.fromEpochMilliseconds(asked[0] as number).toZonedDateTimeISO(zone);
  expect(`${shown.hour}:${shown.minute}`).toBe('18:0');
});
