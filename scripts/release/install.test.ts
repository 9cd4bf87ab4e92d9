/** The installer, run by a real shell against a local server. */
import { spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create } from 'tar';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lockUpdates } from '../../apps/provider/src/update/update-lock.js';
import { PLATFORM, ReleaseServer } from '../../apps/provider/test/update/release-server.js';
import { runCommand } from '../../test/support/run-command.js';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';
import { installerWith } from './installer.js';
import { measure } from './pack.js';

const SCRIPT = fileURLToPath(new URL('../install.sh', import.meta.url));
const NODE = /^NODE_VERSION=(.+)$/m.exec(readFileSync(SCRIPT, 'utf8'))?.[1] as string;

let server: ReleaseServer;
let home: string;
let nodeSum: string;

/** A Node archive in the official layout, containing the running Node. */
async function offerNode(): Promise<string> {
  const name = `node-v${NODE}-${PLATFORM}`;
  const folder = temporaryDirectory('node');
  mkdirSync(join(folder, name, 'bin'), { recursive: true });
  writeFileSync(join(folder, name, 'bin', 'node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`);
  chmodSync(join(folder, name, 'bin', 'node'), 0o755);
  const file = join(folder, 'node.tgz');
  await create({ file, cwd: folder, gzip: true }, [name]);
  server.putFile(`/node/v${NODE}/${name}.tar.gz`, readFileSync(file));
  const { sha256 } = await measure(file);
  return sha256;
}

beforeAll(async () => {
  server = await ReleaseServer.listen();
  nodeSum = await offerNode();
});
afterAll(() => server.close());
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'home of an "owner" '));
  server.fault = () => false;
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const prefix = (): string => join(home, '.local/share/inference-provider');
const command = (): string => join(home, '.local/bin/inference-provider');
const env = (path = process.env.PATH): NodeJS.ProcessEnv => ({ PATH: path, HOME: home, SHELL: '/bin/zsh' });
const options = (...more: string[]): string[] => [SCRIPT, '--coordinator', server.url, '--release-key', server.publicKey, ...more];

const run = (args: readonly string[], path?: string) => runCommand('sh', args, { env: env(path) });

/** A failed installation leaves neither an active version nor remains. */
function expectNothingInstalled(): void {
  expect(existsSync(command())).toBe(false);
  expect(existsSync(join(prefix(), 'current'))).toBe(false);
  if (!existsSync(prefix())) return;
  expect(readdirSync(join(prefix(), 'versions'))).toEqual([]);
  expect(readdirSync(prefix()).filter((name) => name.startsWith('.') || name.startsWith('update.lock'))).toEqual([]);
}

describe('install.sh', () => {
  it('is a script that any shell of its kind reads', () => {
    for (const [program, ...args] of [['sh', '-n'], ['dash', '-n'], ['shellcheck']] as const) {
      const { error, status, stdout, stderr } = spawnSync(program, [...args, SCRIPT], { encoding: 'utf8' });
      if (error !== undefined) console.warn(`SKIPPED: ${program} is not on this machine, so install.sh was not read by it`);
      else expect([program, status, stdout + stderr]).toEqual([program, 0, '']);
    }
    expect(installerWith('KEY', 'OTHER')).toContain("\nRELEASE_KEYS='KEY OTHER'\n");
  });

  it('installs with a Node of its own, says what to add to the PATH, does nothing twice, and upgrades', async () => {
    await server.release('1.0.0');
    const withNode = options('--private-node', '--node-base-url', `${server.url}/node`, '--node-sha256', nodeSum);
    const first = await run(withNode);
    expect(first).toMatchObject({ code: 0 });
    expect(first.output).toContain(`Downloading Node.js ${NODE}`);
    expect(first.output).toContain('Verified the signature of version 1.0.0');
    expect(first.output).toContain('>> ~/.zprofile');
    expect(first.output).toContain(`inference-provider setup --coordinator ${server.url}`);
    // The command starts although the PATH contains no Node.
    expect(spawnSync(command(), ['--version'], { env: env('/usr/bin:/bin'), encoding: 'utf8' }).stdout).toBe('1.0.0\n');
    expect(readdirSync(prefix()).sort()).toEqual(['bin', 'current', 'downloads', 'install.json', 'node', 'versions']);
    expect(JSON.parse(readFileSync(join(prefix(), 'install.json'), 'utf8'))).toMatchObject({ link: command() });

    const { sent } = server;
    const second = await run(withNode, `${join(home, '.local/bin')}:${process.env.PATH}`);
    expect(second).toMatchObject({ code: 0 });
    expect(second.output).toContain('is already installed');
    expect(second.output).not.toContain('is not in your PATH');
    expect(server.sent).toBe(sent);

    await server.release('1.1.0');
    const third = await run(options());
    expect(third).toMatchObject({ code: 0 });
    expect(third.output).toContain('inference-provider restart');
    expect(readlinkSync(join(prefix(), 'current'))).toBe('versions/1.1.0');
    expect(readdirSync(join(prefix(), 'versions')).sort()).toEqual(['1.0.0', '1.1.0']);
  });

  it('goes back to an older release only where that version is asked for', async () => {
    await server.release('1.0.0');
    await server.release('1.10.0');
    expect(await run(options())).toMatchObject({ code: 0 });
    // The older release again, with its original signature.
    await server.release('1.9.9');
    const refused = await run(options());
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.output).toContain('version 1.9.9 is older than the installed version 1.10.0');
    expect(refused.output).toContain('--version 1.9.9');
    expect(readlinkSync(join(prefix(), 'current'))).toBe('versions/1.10.0');
    expect(readdirSync(join(prefix(), 'versions'))).toEqual(['1.10.0']);
    expect(await run(options('--version', '1.9.9'))).toMatchObject({ code: 0 });
    expect(readlinkSync(join(prefix(), 'current'))).toBe('versions/1.9.9');
    // A newer version updates again.
    await server.release('1.10.0');
    expect(await run(options())).toMatchObject({ code: 0 });
    expect(readlinkSync(join(prefix(), 'current'))).toBe('versions/1.10.0');
  });

  it('installs only what its publisher signed, unchanged', async () => {
    const release = await server.release('1.0.0');
    const stranger = await ReleaseServer.listen();
    const refusals: [string, () => void, string[]][] = [
      ['no valid signature', () => {}, ['--release-key', stranger.publicKey]],
      ['no valid signature', () => server.offer({ ...release, version: '1.0.1' }, '1.0.1'), []],
      ['invalid release description', () => server.offer('<html>', '1.0.1'), []],
      ['instead of 2.0.0', () => server.offer(release, '2.0.0'), ['--version', '2.0.0']],
      ['larger than expected', () => server.offer('x'.repeat(70_000), '1.0.1'), []],
      ['larger than expected', () => endless('1.0.0'), []],
      ['checksum mismatch', () => server.putFile('/files/1.0.0.tgz', Buffer.alloc(release.size)), []],
    ];
    function endless(version: string): void {
      server.offer(release, version);
      server.fault = (_request, response) => {
        response.writeHead(200);
        const more = (): void => void (response.destroyed || response.write(Buffer.alloc(1 << 16), more));
        more();
        return true;
      };
    }
    for (const [message, arrange, more] of refusals) {
      server.fault = () => false;
      server.offer(release, '1.0.0');
      arrange();
      const ended = await run(options(...more));
      expect(ended, message).toMatchObject({ code: 1, output: expect.stringContaining(message) });
      expectNothingInstalled();
    }
    await stranger.close();
  });

  it('unpacks no links and nothing that would lie elsewhere, signed or not', async () => {
    const folder = temporaryDirectory('odd');
    mkdirSync(join(folder, 'package/bin'), { recursive: true });
    writeFileSync(join(folder, 'package/bin/inference-provider.js'), 'console.log("1.0.0")');
    symlinkSync('/etc', join(folder, 'package/etc'));
    await create({ file: join(folder, 'a.tgz'), cwd: folder, gzip: true }, ['package']);
    await server.releaseFile('1.0.0', join(folder, 'a.tgz'));
    expect(await run(options())).toMatchObject({ code: 1, output: expect.stringContaining('links or special files') });
    writeFileSync(join(folder, 'outside'), '');
    await create({ file: join(folder, 'b.tgz'), cwd: join(folder, 'package'), gzip: true, preservePaths: true }, ['bin', '../outside']);
    await server.releaseFile('1.0.0', join(folder, 'b.tgz'));
    expect(await run(options())).toMatchObject({ code: 1, output: expect.stringContaining('paths outside its folder') });
    expectNothingInstalled();
  });

  it('goes on where a connection broke off', async () => {
    const { size } = await server.release('1.0.0', '', {}, 300_000);
    let cuts = 0;
    server.sent = 0;
    server.fault = (request, response, body) => {
      if (cuts++ > 1) return false;
      server.send(request, response, body, 100_000);
      return true;
    };
    expect(await run(options())).toMatchObject({ code: 0 });
    expect(cuts).toBe(3);
    expect(server.sent).toBe(size);
  });

  it('ends cleanly when it is interrupted, and starts again from there', async () => {
    await server.release('1.0.0', '', {}, 300_000);
    let stuck: (() => void) | null = null;
    const reached = new Promise<void>((resolve) => (stuck = resolve));
    server.fault = (_request, response, body) => {
      response.writeHead(200, { 'content-length': body.length });
      response.write(body.subarray(0, 100_000), () => stuck?.());
      return true;
    };
    const child = spawn('sh', options(), { env: env(), detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stderr.on('data', (data: Buffer) => (output += data.toString()));
    await reached;
    // Like a terminal: signals the whole process group.
    process.kill(-(child.pid as number), 'SIGINT');
    const code = await new Promise((resolve) => child.once('close', resolve));
    expect({ code, output }).toEqual({ code: 130, output: expect.stringContaining('interrupted') });
    expectNothingInstalled();
    server.fault = () => false;
    expect(await run(options())).toMatchObject({ code: 0 });
  });

  it('waits for no dead process, and replaces neither the lock nor the claim of a live one', async () => {
    await server.release('1.0.0');
    mkdirSync(prefix(), { recursive: true });
    const [lock, claim] = [join(prefix(), 'update.lock'), join(prefix(), 'update.lock.claim')];
    const locks = (): string[] => readdirSync(prefix()).filter((name) => name.startsWith('update.lock'));
    const refused = { code: 1, output: expect.stringContaining('another installation or update is running') };
    const unlock = lockUpdates(prefix());
    const own = readFileSync(lock, 'utf8');
    expect(await run(options())).toMatchObject({ ...refused, output: expect.stringContaining(`(process ${process.pid})`) });
    expect([locks(), readFileSync(lock, 'utf8')]).toEqual([['update.lock'], own]);
    unlock();
    // Of an older version.
    writeFileSync(lock, String(process.pid));
    expect(await run(options())).toMatchObject(refused);
    writeFileSync(lock, '');
    expect(await run(options()), 'an id that is not written yet').toMatchObject(refused);
    writeFileSync(lock, '4194305');
    writeFileSync(claim, own);
    expect(await run(options())).toMatchObject(refused);
    expect([locks(), readFileSync(claim, 'utf8')]).toEqual([['update.lock', 'update.lock.claim'], own]);
    // An earlier process with the id of this one.
    const dead = `${process.pid}\nearlier\n`;
    writeFileSync(lock, dead);
    writeFileSync(claim, dead);
    expect(await run(options())).toMatchObject({ code: 0 });
    expect(locks()).toEqual([]);
  });

  it('writes a lock that the updater of the agent respects', async () => {
    await server.release('1.0.0', '', {}, 300_000);
    let refusal = '';
    server.fault = () => {
      try {
        lockUpdates(prefix())();
      } catch (error) {
        refusal = String(error);
      }
      return false;
    };
    expect(await run(options())).toMatchObject({ code: 0 });
    expect(refusal).toMatch(/another update is in progress \(process \d+\)/);
  });

  it('says that the disk is full, before and while it writes', async () => {
    await server.release('1.0.0');
    const tools = join(home, 'tools');
    mkdirSync(tools);
    const fake = (name: string, text: string): void => writeFileSync(join(tools, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    fake('df', 'printf "Filesystem 1024-blocks Used Available Capacity Mounted on\\n/dev/x 100 90 10 90%% /\\n"');
    expect(await run(options(), `${tools}:${process.env.PATH}`)).toMatchObject({
      code: 1,
      output: expect.stringContaining('not enough disk space'),
    });
    rmSync(join(tools, 'df'));
    // curl's exit code for a failed write.
    fake('curl', `case "$*" in *files*) exit 23 ;; esac\nPATH='${process.env.PATH}' exec curl "$@"`);
    expect(await run(options(), `${tools}:${process.env.PATH}`)).toMatchObject({
      code: 1,
      output: expect.stringContaining('is the disk full?'),
    });
    expectNothingInstalled();
  });

  it('overwrites no command of others, and touches nothing when it only shows what it would do', async () => {
    await server.release('1.0.0');
    expect(await run(options('--dry-run'))).toMatchObject({ code: 0, output: expect.stringContaining('Would link') });
    expect(readdirSync(home)).toEqual([]);
    mkdirSync(join(home, '.local/bin'), { recursive: true });
    writeFileSync(command(), 'mine');
    expect(await run(options())).toMatchObject({ code: 1, output: expect.stringContaining('belongs to another installation') });
    expect(readFileSync(command(), 'utf8')).toBe('mine');
    expect(await run([SCRIPT])).toMatchObject({ code: 2 });
    expect(await run([SCRIPT, '--coordinator', 'http://far.example', '--release-key', 'x'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('https'),
    });
    expect(await run([SCRIPT, '--cordinator', 'x'])).toMatchObject({
      code: 2,
      output: expect.stringContaining('unknown option: --cordinator'),
    });
  });

  it('removes an installation that does not start any more', async () => {
    await server.release('1.0.0');
    expect(await run(options())).toMatchObject({ code: 0 });
    writeFileSync(join(prefix(), 'current/bin/inference-provider.js'), 'process.exit(9)');
    expect(await run([SCRIPT, '--uninstall'])).toMatchObject({ code: 0, output: expect.stringContaining('Removed') });
    expect(existsSync(command()) || existsSync(prefix())).toBe(false);
    expect(await run([SCRIPT, '--uninstall'])).toMatchObject({ code: 0, output: expect.stringContaining('Nothing is installed') });
    expect(statSync(home).isDirectory()).toBe(true);
  });
});
