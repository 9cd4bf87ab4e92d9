/** The peer bench without its build: choice of the tarball, arguments, judgement, and servers that exit, hang or are killed. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { type PeerSettings, peerArguments, startPeer } from './peer.js';
import { judge, type Measured, type Round, SETUPS } from './peer-cases.js';
import { hasIntegrity, lockedPackage, tarballName } from './peer-program.js';

const folder = temporaryDirectory('peer');
const settings: PeerSettings = { model: 'model', slots: 1, contextSize: 512, log: join(folder, 'log') };

function program(name: string, text: string): { path: string; libraries: null } {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o755 });
  return { path, libraries: null };
}

it.each([
  ['a signal', '#!/bin/sh\nkill -KILL $$\n', 'ended: SIGKILL'],
  ['an exit', '#!/bin/sh\necho no such model\nexit 3\n', 'ended: exit code 3\nno such model'],
])('a server that dies at its start, by %s, is reported', async (name, text, message) => {
  await expect(startPeer(program(name.replace(' ', '-'), text), settings)).rejects.toThrow(message);
});

it('a server that never becomes healthy is killed', async () => {
  const silent = program('silent', '#!/bin/sh\nexec sleep 1000\n');
  await expect(startPeer(silent, { ...settings, startMs: 300 })).rejects.toThrow('not healthy in time');
});

const healthy = program(
  'healthy',
  `#!${process.execPath}
require('node:http').createServer((request, response) => {
  if (request.url === '/health') response.end();
}).listen(process.argv[process.argv.indexOf('--port') + 1]);
`,
);

it('a server that was killed can be stopped', async () => {
  const peer = await startPeer(healthy, settings);
  process.kill(peer.pid, 'SIGKILL');
  await peer.stop();
  await peer.stop();
  await expect(fetch(`${peer.url}/health`)).rejects.toThrow();
});

it('a request to a server that is killed meanwhile fails with the signal', async () => {
  const peer = await startPeer(healthy, settings);
  const answer = peer.whileItRuns(fetch(`${peer.url}/v1/chat/completions`));
  setTimeout(() => process.kill(peer.pid, 'SIGILL'), 100);
  await expect(answer).rejects.toThrow('ended: SIGILL');
});

it('the server computes with one thread, and its slots share the context equally', () => {
  const args = peerArguments({ ...settings, slots: 4, contextSize: 2048, extraArgs: ['--spec-type', 'ngram-simple'] }, 4711);
  const argument = (option: string) => args[args.indexOf(option) + 1];
  expect(['--threads', '--threads-batch', '--parallel', '--ctx-size', '--port'].map(argument)).toEqual(['1', '1', '4', '8192', '4711']);
  expect(args.slice(-2)).toEqual(['--spec-type', 'ngram-simple']);
});

it('no case has more streams than slots', () => {
  const cases = SETUPS.flatMap(({ slots, cases }) => cases.map(({ streams }) => ({ slots, streams })));
  expect(cases.filter(({ slots, streams }) => streams > slots)).toEqual([]);
});

const lockFile = (entry: object) => JSON.stringify({ packages: { 'node_modules/node-llama-cpp': entry } });

it('the tarball is the one that the lock file pins', () => {
  const bytes = Buffer.from('tarball');
  const integrity = `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
  const locked = lockedPackage(lockFile({ version: '3.22.1', integrity, license: 'MIT' }), 'node-llama-cpp');
  expect(locked).toEqual({ version: '3.22.1', integrity });
  expect(tarballName('node-llama-cpp', locked)).toBe('node-llama-cpp-3.22.1.tgz');
  expect(hasIntegrity(bytes, locked.integrity)).toBe(true);
  expect(hasIntegrity(Buffer.from('another'), locked.integrity)).toBe(false);
});

it.each([
  ['without the package', '{"packages":{}}', 'has no node-llama-cpp'],
  ['with a weak hash', lockFile({ version: '3.22.1', integrity: 'sha1-abc' }), 'has no SHA-512'],
])('a lock file %s is rejected', (_what, text, message) => {
  expect(() => lockedPackage(text, 'node-llama-cpp')).toThrow(message);
});

const measured = (tokensPerSecond: number, firstTokenMs: number): Measured => ({ tokensPerSecond, firstTokenMs, cpuPerToken: 10 });
const round = (agent: Measured, peer: Measured = measured(100, 20)): Round => ({ peer, agent });

it('the verdict is the median of the ratios of neighbouring rounds', () => {
  // A load that slows both sides of a round changes no ratio.
  const slow = round(measured(10.5, 180), measured(10, 200));
  const verdict = judge([round(measured(110, 18)), slow, round(measured(50, 90))]);
  expect(verdict).toMatchObject({ cpuPerToken: 1, isMet: true });
  expect(verdict.tokensPerSecond).toBeCloseTo(1.05);
  expect(verdict.firstTokenMs).toBeCloseTo(0.9);
});

it.each([
  ['fewer tokens per second', measured(99, 20), false],
  ['a later first token', measured(100, 20.1), false],
  ['equal figures', measured(100, 20), true],
])('the target with %s (%o): %s', (_what, agent, isMet) => {
  expect(judge([round(agent)]).isMet).toBe(isMet);
});
