/** Control socket: one daemon per data directory, owner only, bounded requests. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import { join } from 'node:path';
import Type from 'typebox';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { controlPath, makeControlFolder } from '../../src/control/address.js';
import { ControlError, requestDaemon, requestEnclaveCheck, requestStatus } from '../../src/control/control-client.js';
import { AlreadyRunningError, ControlServer } from '../../src/control/control-server.js';
import { lockMachine } from '../../src/control/machine-lock.js';
import { ControlRefusal, type ControlRoute, post } from '../../src/control/route.js';
import { controlRoutes } from '../../src/control/routes.js';
import { startingStatus } from '../../src/daemon/status.js';
import { startupErrorText } from '../../src/startup-error.js';

let dataDir: string;
const open: (ControlServer | Server)[] = [];
beforeEach(() => {
  dataDir = temporaryDirectory('control');
});
afterEach(async () => {
  for (const server of open.splice(0)) {
    if (server instanceof ControlServer) await server.close();
    else server.close().closeAllConnections();
  }
});

const facts = () => ({
  dataDir,
  socketUrl: 'wss://gateway.example/provider/v1/socket',
  simulatedEnclave: true,
  models: [{ path: '/m.gguf' }],
});
const routes: ControlRoute[] = controlRoutes({
  status: async () => startingStatus(facts(), 1),
  enclave: async () => ({ usable: false, kind: 'native', problem: 'gone' }),
  reload: async () => startingStatus(facts(), 1).settings,
  stop: async () => ({ drain_ms: 15_000 }),
});

async function start(folder = dataDir, more: readonly ControlRoute[] = []): Promise<ControlServer> {
  const server = await ControlServer.open(folder, [...routes, ...more]);
  open.push(server);
  return server;
}

const problemOf = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => 'none',
    (error: ControlError) => error.problem,
  );

describe('a daemon', () => {
  it('answers its owner only', async () => {
    await start();
    expect(await requestStatus(dataDir, 5000)).toMatchObject({
      state: 'starting',
      coordinator: 'https://gateway.example',
      pid: process.pid,
    });
    expect(await requestEnclaveCheck(dataDir, 5000)).toEqual({ usable: false, kind: 'native', problem: 'gone' });
    expect(statSync(controlPath(dataDir)).mode & 0o777).toBe(0o600);
  });

  it('needs a folder of the same user', () => {
    const folder = join(dataDir, 'private');
    mkdirSync(folder);
    const { uid } = statSync(folder);
    expect(() => makeControlFolder(join(folder, 'control.sock'), uid + 1)).toThrow('belongs to another user');
    // As root: a link of root to the folder of a service's user, as systemd makes for a DynamicUser.
    if (uid === 0) chownSync(folder, 65532, 65532);
    symlinkSync(folder, join(dataDir, 'link'));
    expect(() => makeControlFolder(join(dataDir, 'link/control.sock'), statSync(folder).uid)).not.toThrow();
  });

  it('is unique per data directory, even with concurrent starts', async () => {
    const starts = await Promise.allSettled([start(), start(), start()]);
    expect(starts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = starts.find((result) => result.status === 'rejected')?.reason as unknown;
    expect(refused).toBeInstanceOf(AlreadyRunningError);
    expect(startupErrorText(refused)).toBe(`Another provider is already running with the data directory ${dataDir}.`);
    await expect(start()).rejects.toBeInstanceOf(AlreadyRunningError);
  });

  it('with a real enclave is unique per user, for every data directory', async () => {
    const home = join(dataDir, 'home');
    const giveBack = await lockMachine(home);
    const refused: unknown = await lockMachine(home).catch((error: unknown) => error);
    expect(startupErrorText(refused)).toMatch(
      /^Another provider of this user is already running on this machine with another data directory; /,
    );
    await giveBack();
    await (await lockMachine(home))();
  });

  it('unlocks the directory when stopped', async () => {
    await (await start()).close();
    open.length = 0;
    expect(await problemOf(requestStatus(dataDir, 5000))).toBe('not_running');
    await start();
    expect((await requestStatus(dataDir, 5000)).state).toBe('starting');
  });

  it('takes over the socket of a killed daemon', async () => {
    const path = controlPath(dataDir);
    const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(statSync(path).isSocket()).toBe(true);
    expect(await problemOf(requestStatus(dataDir, 5000))).toBe('not_running');
    await start();
    expect((await requestStatus(dataDir, 5000)).pid).toBe(process.pid);
  });

  it('starts after another daemon died during its start', async () => {
    writeFileSync(`${controlPath(dataDir)}.start`, '');
    await expect(start()).rejects.toBeInstanceOf(AlreadyRunningError);
    utimesSync(`${controlPath(dataDir)}.start`, 1, 1);
    await start();
  });

  it('is found although the directory path exceeds the socket limit', async () => {
    const deep = join(dataDir, 'd'.repeat(120));
    const path = controlPath(deep);
    expect(path.length).toBeLessThan(104);
    await start(deep);
    expect((await requestStatus(deep, 5000)).state).toBe('starting');
    rmSync(join(path, '..'), { recursive: true, force: true });
  });
});

describe('a route', () => {
  const isEcho = (value: unknown): value is { until: number | null } => (value as { until?: unknown } | null)?.until !== undefined;
  const echo = post(
    '/v1/echo',
    Type.Object({ until: Type.Union([Type.Integer(), Type.Null()]) }, { additionalProperties: false }),
    async (body) => body,
  );
  const busy = post('/v1/busy', Type.Object({}), async () => {
    throw new ControlRefusal('too_busy', 'a change is being made');
  });
  const say = (
    path: string,
    method: string,
    body?: string,
  ): Promise<{ status: number | undefined; text: string; allow: string | undefined }> =>
    new Promise((resolve, reject) => {
      const call = request({ socketPath: controlPath(dataDir), path, method }, (response) => {
        let text = '';
        response.on('data', (part: Buffer) => (text += part.toString()));
        response.on('end', () => resolve({ status: response.statusCode, text, allow: response.headers.allow }));
      });
      call.on('error', reject);
      call.end(body);
    });

  it('accepts only bodies of the schema', async () => {
    await start(dataDir, [echo]);
    expect(await requestDaemon(dataDir, { path: '/v1/echo', body: { until: 5 } }, isEcho, 5000)).toEqual({ until: 5 });
    for (const body of ['{"until":"soon"}', '{"until":1,"more":2}', '{', '{}', '[]', '']) {
      expect(await say('/v1/echo', 'POST', body)).toMatchObject({ status: 400, text: expect.stringContaining('bad_body') as string });
    }
    expect(await say('/v1/echo', 'POST', `{"until":1,"x":"${'x'.repeat(70_000)}"}`)).toMatchObject({ status: 400 });
    expect(await requestDaemon(dataDir, { path: '/v1/echo', body: { until: null } }, isEcho, 5000)).toEqual({ until: null });
  });

  it('reports unknown methods and addresses', async () => {
    await start(dataDir, [echo]);
    expect(await say('/v1/echo', 'GET')).toMatchObject({ status: 405, allow: 'POST' });
    expect(await say('/v1/status', 'DELETE')).toMatchObject({ status: 405, allow: 'GET' });
    expect(await say('/v1/nothing', 'GET')).toMatchObject({ status: 404 });
  });

  it("passes a refusal's code and sentence to the caller", async () => {
    await start(dataDir, [busy]);
    const error = await requestDaemon(dataDir, { path: '/v1/busy', body: {} }, isEcho, 5000).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ControlError);
    expect(error).toMatchObject({ problem: 'refused', code: 'too_busy', message: 'a change is being made' });
  });
});

test('an internal error of the daemon is reported with its own message', async () => {
  const full = post('/v1/full', Type.Object({}), async () => {
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  });
  await start(dataDir, [full]);
  const isNothing = (value: unknown): value is null => value === null;
  await expect(requestDaemon(dataDir, { path: '/v1/full', body: {} }, isNothing, 5000)).rejects.toThrow(/^the disk is full/);
});

describe('a question', () => {
  const serve = async (listener: Parameters<typeof createServer>[1]): Promise<void> => {
    const server = createServer(listener as never).listen(controlPath(dataDir));
    open.push(server);
    await once(server, 'listening');
  };

  it('ends without an answer', async () => {
    await serve((() => {}) as never);
    expect(await problemOf(requestStatus(dataDir, 100))).toBe('no_answer');
  });

  it('is not taken for answered by something else', async () => {
    await serve(((request: { url: string }, response: { end: (text: string) => void }) =>
      response.end(request.url === '/v1/status' ? '{"version":"1"}' : 'no JSON')) as never);
    expect(await problemOf(requestStatus(dataDir, 5000))).toBe('not_understood');
    expect(await problemOf(requestEnclaveCheck(dataDir, 5000))).toBe('not_understood');
  });
});
