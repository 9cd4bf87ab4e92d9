/** The peer bench's reaction to a server that exits or is killed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { startPeer } from './peer.js';

const folder = temporaryDirectory('peer');

function program(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o755 });
  return path;
}

it.each([
  ['a signal', '#!/bin/sh\nkill -KILL $$\n', 'ended: SIGKILL'],
  ['an exit', '#!/bin/sh\nexit 3\n', 'ended: exit code 3'],
])('a server that dies at its start, by %s, is reported', async (name, text, message) => {
  await expect(startPeer(program(name.replace(' ', '-'), text), 'model', 1, 512)).rejects.toThrow(message);
});

it('a server that was killed can be stopped', async () => {
  const serve =
    "require('node:http').createServer((_, response) => response.end()).listen(process.argv[process.argv.indexOf('--port') + 1])";
  const peer = await startPeer(program('healthy', `#!${process.execPath}\n${serve};\n`), 'model', 1, 512);
  process.kill(peer.pid, 'SIGKILL');
  await peer.stop();
  await peer.stop();
  await expect(fetch(`${peer.url}/health`)).rejects.toThrow();
});
