/** Homebrew formula and inputs of the macOS package, as far as they can be checked without a Mac. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { DOMParser } from '@xmldom/xmldom';
import { parse } from 'plist';
import { create } from 'tar';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';
import { archive } from './archive.js';
import { formula } from './formula.js';
import { stageMacPackage } from './macos-package.js';
import { archiveName } from './pack.js';
import { filesBelow, stage } from './stage.js';

const VERSION = '1.2.3';
const AGENT = 'payload/usr/local/lib/inference-provider';

let out: string;
let folder: string;
beforeAll(async () => {
  out = temporaryDirectory('macos');
  stage({ folder: join(out, 'package'), version: VERSION, releaseKeys: ['KEY'], demoModels: false });
  // A stand-in for a prebuilt library of the dependencies.
  mkdirSync(join(out, 'package/node_modules/sharp'));
  writeFileSync(join(out, 'package/node_modules/sharp/sharp.node'), 'Mach-O');
  await archive(join(out, 'package'), join(out, archiveName(VERSION, 'darwin-arm64')));
  folder = await stageMacPackage(out, VERSION);
});

const read = (path: string): string => readFileSync(join(folder, path), 'utf8');

describe('the Homebrew formula', () => {
  const RELEASE = { version: VERSION, url: 'https://releases.example/inference-provider-1.2.3-darwin-arm64.tgz', sha256: 'a'.repeat(64) };

  it('names the archive, its hash, Node, the service and a test', () => {
    const text = formula(RELEASE);
    expect(formula(RELEASE)).toBe(text);
    const lines = text.split('\n').map((line) => line.trim());
    for (const line of [
      'homepage "https://releases.example"',
      `url "${RELEASE.url}"`,
      'version "1.2.3"',
      `sha256 "${RELEASE.sha256}"`,
      'depends_on "node"',
      'run [opt_bin/"inference-provider", "serve", "--service"]',
      'keep_alive successful_exit: false',
      'system "sh", libexec/"menu-bar/build.sh"',
    ])
      expect(lines).toContain(line);
    expect(text).not.toMatch(/@[A-Z]/);
    // Each block ends at its own indentation.
    const open: number[] = [];
    for (const line of text.split('\n')) {
      const indent = line.length - line.trimStart().length;
      if (/^\s*(?:class|def) |\bdo$/.test(line)) open.push(indent);
      else if (/^\s*end$/.test(line)) expect(open.pop()).toBe(indent);
    }
    expect(open).toEqual([]);
    for (const file of ['install/build-helper.mjs', 'menu-bar/build.sh', 'bin/inference-provider.js'])
      expect([file, existsSync(join(out, 'package', file))]).toEqual([file, true]);
  });

  it('is Ruby', () => {
    const { error, status, stdout, stderr } = spawnSync('ruby', ['-wc'], { input: formula(RELEASE), encoding: 'utf8' });
    if (error !== undefined) console.warn('SKIPPED: ruby is not on this machine, so the formula was not parsed');
    else expect([status, stdout + stderr]).toEqual([0, 'Syntax OK\n']);
  });

  it('refuses values that could end a string', () => {
    expect(() => formula({ ...RELEASE, url: 'https://h/"#{system("x")}' })).toThrow('special characters');
    expect(() => formula({ ...RELEASE, url: 'http://h/f.tgz' })).toThrow('https');
    expect(() => formula({ ...RELEASE, version: '1.2' })).toThrow('is not a version');
    expect(() => formula({ ...RELEASE, sha256: 'abc' })).toThrow('64 hexadecimal digits');
  });
});

describe('the inputs of the macOS package', () => {
  it('are well-formed', () => {
    const problems: string[] = [];
    const parser = new DOMParser({ onError: (_level, message) => problems.push(message) });
    const xml = parser.parseFromString(read('distribution.xml'), 'text/xml');
    expect(problems).toEqual([]);
    const one = (name: string) => xml.getElementsByTagName(name)[0];
    expect(xml.documentElement?.tagName).toBe('installer-gui-script');
    expect(one('options')?.getAttribute('hostArchitectures')).toBe('arm64');
    expect(one('os-version')?.getAttribute('min')).toBe('14.0');
    const choice = one('choice');
    expect(one('line')?.getAttribute('choice')).toBe(choice?.getAttribute('id'));
    const references = [...xml.getElementsByTagName('pkg-ref')];
    expect(references.map((node) => node.getAttribute('id'))).toEqual(['inference-provider', 'inference-provider']);
    expect([references[1]?.getAttribute('version'), references[1]?.textContent]).toEqual([VERSION, 'agent.pkg']);
    for (const name of ['license', 'conclusion'])
      expect(existsSync(join(folder, 'resources', one(name)?.getAttribute('file') ?? ''))).toBe(true);
    expect(parse(read('entitlements.plist'))).toEqual({
      'com.apple.security.cs.allow-jit': true,
      'com.apple.security.cs.allow-unsigned-executable-memory': true,
    });
  });

  it('have scripts that any shell reads', () => {
    for (const script of ['build-package.sh', 'scripts/preinstall', 'scripts/postinstall', 'payload/usr/local/bin/inference-provider']) {
      expect([script, statSync(join(folder, script)).mode & 0o777]).toEqual([script, 0o755]);
      for (const shell of ['sh', 'bash']) {
        expect([script, shell, spawnSync(shell, ['-n', join(folder, script)], { encoding: 'utf8' }).stderr]).toEqual([script, shell, '']);
      }
      const { error, status, stdout } = spawnSync('shellcheck', ['-s', 'sh', join(folder, script)], { encoding: 'utf8' });
      if (error !== undefined) console.warn(`SKIPPED: shellcheck is not on this machine, so ${script} was not read by it`);
      else expect([script, status, stdout]).toEqual([script, 0, '']);
    }
  });

  it('have a payload that starts in an empty environment, with the Node of the package alone', () => {
    const node = join(folder, AGENT, 'node/bin');
    mkdirSync(node, { recursive: true });
    writeFileSync(join(node, 'node'), `#!/bin/sh\nexec '${process.execPath}' "$@"\n`, { mode: 0o755 });
    const command = join(folder, 'payload/usr/local/bin/inference-provider');
    const run = (...args: string[]) =>
      spawnSync('env', ['-i', 'PATH=/usr/bin:/bin', command, ...args, '--data-dir', join(out, 'data')], { encoding: 'utf8' });
    const version = spawnSync('env', ['-i', 'PATH=/usr/bin:/bin', command, '--version'], { encoding: 'utf8' });
    expect(version).toMatchObject({ status: 0, stdout: '1.2.3\n' });
    expect(run('status', '--json')).toMatchObject({ status: 3, stdout: expect.stringContaining('not_running') });
    expect(run('uninstall', '--dry-run').stdout).toContain('sudo pkgutil --forget inference-provider');
    rmSync(join(folder, AGENT, 'node'), { recursive: true });
  });

  it('are the same bytes each time', async () => {
    const bytes = () => filesBelow(folder).map((path) => [path, createHash('sha256').update(read(path)).digest('hex')]);
    const before = bytes();
    await stageMacPackage(out, VERSION);
    expect(bytes()).toEqual(before);
    await expect(stageMacPackage(out, '9.9.9')).rejects.toThrow('run pack with --platform darwin-arm64 first');
  });
});

describe('build-package.sh', () => {
  const signing = {
    APPLICATION_IDENTITY: 'Developer ID Application: A',
    INSTALLER_IDENTITY: 'Developer ID Installer: A',
    NOTARY_PROFILE: 'p',
  };
  const build = (args: readonly string[], env: NodeJS.ProcessEnv) =>
    spawnSync('sh', [join(folder, 'build-package.sh'), ...args], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin', ...env } });

  /** Programs of macOS that record their arguments, and a Node archive in the official layout. */
  async function fakeMac(): Promise<{ env: NodeJS.ProcessEnv; calls: () => string[] }> {
    const tools = join(out, 'tools');
    const log = join(out, 'calls.log');
    mkdirSync(tools, { recursive: true });
    const fake = (name: string, text: string): void => writeFileSync(join(tools, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    fake('uname', 'echo Darwin');
    for (const name of ['codesign', 'pkgbuild', 'productbuild', 'pkgutil', 'xcrun', 'curl'])
      fake(name, `printf '%s\\n' "${name} $*" >>'${log}'; for last; do :; done; case ${name} in p*build) echo pkg >"$last" ;; esac`);
    fake('swiftc', 'while [ "$1" != -o ]; do shift; done; echo Mach-O >"$2"');
    fake('file', 'if grep -q Mach-O "$2" 2>/dev/null; then echo "Mach-O 64-bit"; else echo text; fi');
    fake('shasum', 'shift 2; exec sha256sum "$@"');
    writeFileSync(log, '');
    const name = `node-v${/^NODE_VERSION=(.*)$/m.exec(read('release.env'))?.[1]}-darwin-arm64`;
    for (const path of ['bin', 'lib/node_modules/npm']) mkdirSync(join(out, name, path), { recursive: true });
    writeFileSync(join(out, name, 'bin/node'), 'Mach-O');
    writeFileSync(join(out, name, 'lib/node_modules/npm/package.json'), '{}');
    writeFileSync(join(out, name, 'LICENSE'), '');
    const file = join(out, 'node.tar.gz');
    await create({ file, cwd: out, gzip: true }, [name]);
    const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
    writeFileSync(join(folder, 'release.env'), read('release.env').replace(/^NODE_SHA256=.*$/m, `NODE_SHA256=${sha256}`));
    chmodSync(join(tools, 'uname'), 0o755);
    return {
      env: { PATH: [tools, '/usr/bin', '/bin'].join(delimiter), NODE_ARCHIVE: file },
      calls: () => readFileSync(log, 'utf8').trim().split('\n'),
    };
  }

  it('says that it needs a Mac, a certificate and a known Node', async () => {
    if (process.platform !== 'darwin') {
      expect(build([], signing)).toMatchObject({ status: 1, stderr: expect.stringContaining('Copy this folder to a Mac') });
      expect(existsSync(join(folder, 'build'))).toBe(false);
    }
    const { env, calls } = await fakeMac();
    expect(build(['--fast'], env)).toMatchObject({ status: 1, stderr: expect.stringContaining('unknown option --fast') });
    expect(build([], env).stderr).toContain('Developer ID Application');
    writeFileSync(join(out, 'other.tar.gz'), 'other');
    const other = build(['--unsigned'], { ...env, NODE_ARCHIVE: join(out, 'other.tar.gz') });
    expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining('does not have the expected SHA-256') });
    expect(calls()).toEqual(['']);
  });

  it('signs every program, then builds, signs, notarizes and staples the package', async () => {
    const { env, calls } = await fakeMac();
    expect(build([], { ...env, ...signing })).toMatchObject({ status: 0 });
    const all = calls();
    const signed = all.filter((call) =>
      call.startsWith('codesign --force --options runtime --timestamp --sign Developer ID Application: A'),
    );
    const names = signed.map((call) => call.split('/').at(-1)).sort();
    expect(names).toEqual(['inference-enclave', 'inference-menu-bar', 'node', 'sharp.node']);
    expect(signed.filter((call) => call.includes('--entitlements entitlements.plist'))).toEqual([
      expect.stringMatching(/node\/bin\/node$/),
    ]);
    expect(all.filter((call) => call.startsWith('codesign --verify --strict'))).toHaveLength(4);
    expect(all.slice(all.findIndex((call) => call.startsWith('pkgbuild')))).toEqual([
      'pkgbuild --root build/root --identifier inference-provider --version 1.2.3 --install-location / --ownership recommended --scripts scripts build/agent.pkg',
      'productbuild --distribution distribution.xml --package-path build --resources resources --sign Developer ID Installer: A --timestamp inference-provider-1.2.3.pkg',
      'xcrun notarytool submit inference-provider-1.2.3.pkg --keychain-profile p --wait',
      'xcrun stapler staple inference-provider-1.2.3.pkg',
      'xcrun stapler validate inference-provider-1.2.3.pkg',
      'pkgutil --check-signature inference-provider-1.2.3.pkg',
    ]);
    expect(readdirSync(join(folder, 'build/root/usr/local/lib/inference-provider/node')).sort()).toEqual(['LICENSE', 'bin', 'lib']);
    expect(existsSync(join(folder, AGENT, 'node'))).toBe(false);
  });

  it('builds for a test without certificates', async () => {
    const { env, calls } = await fakeMac();
    expect(build(['--unsigned'], env)).toMatchObject({ status: 0, stdout: expect.stringContaining('inference-provider-1.2.3.pkg') });
    expect(calls().filter((call) => /notarytool|Developer ID/.test(call))).toEqual([]);
  });
});
