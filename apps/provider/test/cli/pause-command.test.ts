/** `pause until` uses the time zone of the schedule. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Temporal } from 'temporal-polyfill';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { pauseCommand } from '../../src/cli/commands/pause.js';
import { availabilityRoutes } from '../../src/control/availability-routes.js';
import { ControlServer } from '../../src/control/control-server.js';

test.each(['Pacific/Kiritimati', 'Pacific/Pago_Pago'])("the time of day uses the settings' zone: %s", async (zone) => {
  const dataDir = temporaryDirectory('pause');
  writeFileSync(join(dataDir, 'config.toml'), `[availability]\ntime_zone = "${zone}"\n`);
  const asked: unknown[] = [];
  const routes = availabilityRoutes({ availability: () => null, setPause: (pause) => void asked.push(pause?.until) });
  const server = await ControlServer.open(dataDir, routes);
  expect(await pauseCommand.run(['until', '18:00', '--data-dir', dataDir])).toBe(0);
  await server.close();
  const shown = Temporal.Instant.fromEpochMilliseconds(asked[0] as number).toZonedDateTimeISO(zone);
  expect(`${shown.hour}:${shown.minute}`).toBe('18:0');
});
