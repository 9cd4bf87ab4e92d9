/** `schedule set` beside a daemon that does not apply the change. */

import Type from 'typebox';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { ControlServer } from '../../src/control/control-server.js';
import { ControlRefusal, post } from '../../src/control/route.js';
import { runCommand } from '../support/owner-command.js';

it.each([[[]], [['--json']]])('reports the failure on stderr with %j', async (options) => {
  const dataDir = temporaryDirectory('schedule');
  const refuse = async (): Promise<never> => {
    throw new ControlRefusal('busy', 'the daemon is busy');
  };
  const server = await ControlServer.open(dataDir, [post('/v1/reload', Type.Object({}), refuse)]);
  try {
    const { code, stdout, stderr } = await runCommand(dataDir, 'schedule', 'set', 'mon 10:00-11:00', ...options);
    expect(stderr).toContain('did not apply the change (the daemon is busy); restart the provider.');
    expect({ code, isJson: stdout.startsWith('{') }).toEqual({ code: 0, isJson: options.length > 0 });
  } finally {
    await server.close();
  }
});
