/** The package that owners install: content, reproducibility, and install step. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../test/support/temporary-directory.js';
import { archive, requireHashes } from './archive.js';
import { addRelease, readFeed } from './feed.js';
import { makeReleaseKey, publicKeyOf, readReleaseKey, signRelease } from './keys.js';
import { ROOT } from './manifest.js';
import { measure } from './pack.js';
import { lockedClosure } from './shrinkwrap.js';
import { filesBelow, stage } from './stage.js';

let folder: string;
let root: string;
beforeAll(() => {
  folder = temporaryDirectory('package');
  root = join(folder, 'package');
  stage({ folder: root, version: '1.2.3', releaseKeys: ['KEY'], demoModels: false });
});

const json = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;

describe('the package', () => {
  it('has exact dependencies, each with its hash in the lock file, and nothing of the workspace', () => {
    const manifest = json(join(root, 'package.json')) as { dependencies: Record<string, string> } & Record<string, unknown>;
    expect(manifest).toMatchObject({ name: 'inference-provider', version: '1.2.3', releaseKeys: ['KEY'] });
    expect(manifest).not.toHaveProperty('private');
    expect(Object.keys(manifest.dependencies).sort()).toEqual([
      '@inference/enclave',
      'koffi',
      'node-llama-cpp',
      'onnxruntime-node',
      'sharp',
    ]);
    for (const version of Object.values(manifest.dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    const { packages } = json(join(root, 'npm-shrinkwrap.json')) as { packages: Record<string, Record<string, unknown>> };
    for (const [path, entry] of Object.entries(packages)) {
      if (path === '' || entry.inBundle === true) continue;
      expect(entry).not.toHaveProperty('link');
      // Platform packages absent from the registry have a version only in the lock file.
      if (entry.optional !== true) expect([path, typeof entry.integrity]).toEqual([path, 'string']);
    }
    // Dependencies of Macs are locked on every system that packs.
    expect(packages['node_modules/@img/sharp-darwin-arm64']).toMatchObject({ integrity: expect.stringMatching(/^sha512-/) });
    expect(packages).toHaveProperty(['node_modules/@node-llama-cpp/mac-arm64-metal']);
    expect(packages).toHaveProperty(['node_modules/@fugood/node-llama-darwin-arm64', 'integrity']);
    const files = filesBelow(root);
    expect(files.filter((path) => path.endsWith('.ts') || path.endsWith('.map') || path.includes('test'))).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining(['LICENSE', 'README.md', 'bin/inference-provider.js', 'dist/main.js', 'dist/update/guard/main.js']),
    );
    expect(files).toContain('node_modules/@inference/enclave/native/Sources/main.swift');
  });

  it('starts where only its own dependencies are, and is the same bytes each time', async () => {
    const program = join(root, 'bin/inference-provider.js');
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [program, ...args], { encoding: 'utf8', env: { PATH: '/usr/bin:/bin', HOME: folder } });
    expect(run('--version')).toMatchObject({ status: 0, stdout: '1.2.3\n' });
    expect(run('--help').stdout).toContain('bugreport');
    expect(run('serve', '--coordinator', 'http://127.0.0.1:9', '--simulated-enclave')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('The demo models are not installed'),
    });
    expect(statSync(program).mode & 0o111).toBe(0o111);
    const [one, two] = [join(folder, 'one.tgz'), join(folder, 'two.tgz')];
    await archive(root, one);
    await archive(root, two);
    expect(await measure(one)).toEqual(await measure(two));
  });

  it('builds the enclave helper with the tools of a Mac, and says what is missing without them', () => {
    const native = join(folder, 'native');
    cpSync(join(root, 'node_modules/@inference/enclave/native'), native, { recursive: true });
    const tools = join(folder, 'tools');
    mkdirSync(tools);
    const fake = (name: string, text: string): void => writeFileSync(join(tools, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
    fake('uname', 'echo Darwin');
    const build = (path: string) => spawnSync('/bin/sh', [join(native, 'build.sh')], { encoding: 'utf8', env: { PATH: path } });
    expect(build(`${tools}:/usr/bin:/bin`)).toMatchObject({ status: 1, stderr: expect.stringContaining('xcode-select --install') });
    fake('swiftc', 'while [ "$1" != -o ]; do shift; done; echo helper > "$2"');
    fake('codesign', 'exit 0');
    expect(build(`${tools}:/usr/bin:/bin`)).toMatchObject({ status: 0 });
    expect(readFileSync(join(native, 'bin/inference-enclave'), 'utf8')).toBe('helper\n');
    // npm's install step: a no-op on machines other than Macs.
    const step = spawnSync(process.execPath, [join(root, 'install/build-helper.mjs'), '--strict'], { encoding: 'utf8' });
    if (process.platform !== 'darwin') expect(step).toMatchObject({ status: 0, stdout: '', stderr: '' });
  });
});

describe('a release', () => {
  it('is signed by a key that lies outside of the repository and is its owner’s alone', () => {
    const file = join(folder, 'key.pem');
    expect(() => makeReleaseKey(join(ROOT, 'key.pem'))).toThrow('must not lie in the repository');
    expect(existsSync(join(ROOT, 'key.pem'))).toBe(false);
    const publicKey = makeReleaseKey(file);
    expect(publicKeyOf(readReleaseKey(file))).toBe(publicKey);
    expect(() => makeReleaseKey(file)).toThrow('EEXIST');
    spawnSync('chmod', ['644', file]);
    expect(() => readReleaseKey(file)).toThrow('other users can read');
    spawnSync('chmod', ['600', file]);
  });

  it('is given out once with the same bytes', () => {
    const key = readReleaseKey(join(folder, 'key.pem'));
    const file = join(folder, 'releases.json');
    const facts = { platform: 'darwin-arm64', url: 'https://h/f', size: 5, node: '20.19.0', notes: '' } as const;
    const put = (version: string, sha256: string): void => addRelease(file, signRelease({ ...facts, version, sha256 }, key));
    put('1.9.0', 'a'.repeat(64));
    put('1.10.0', 'b'.repeat(64));
    put('1.9.0', 'a'.repeat(64));
    expect(readFeed(file).releases.map(({ version }) => version)).toEqual(['1.10.0', '1.9.0']);
    expect(() => put('1.10.0', 'c'.repeat(64))).toThrow('use a new version');
    writeFileSync(file, '{"releases":[{}]}');
    expect(() => readFeed(file)).toThrow('is not a release feed');
  });

  it('is refused for a platform that installs a package without a hash', () => {
    const integrity = 'sha512-x';
    const packages = {
      '': {},
      'node_modules/a': { integrity },
      'node_modules/of-mac': { os: ['darwin'], cpu: ['arm64'] },
      'node_modules/own': { inBundle: true },
    };
    expect(() => requireHashes(packages, 'linux-x64')).not.toThrow();
    expect(() => requireHashes(packages, 'darwin-arm64')).toThrow('no hash of node_modules/of-mac');
    expect(() => requireHashes({ ...packages, 'node_modules/b': {} }, 'linux-x64')).toThrow('no hash of node_modules/b');
  });

  it('takes from the lock file what is needed, and only that', () => {
    const lock = {
      packages: {
        '': {},
        'node_modules/a': { version: '1.0.0', dependencies: { b: '^1' }, optionalDependencies: { gone: '1' }, dev: true },
        'node_modules/b': { version: '1.0.0' },
        'node_modules/a/node_modules/b': { version: '2.0.0' },
        'apps/x/node_modules/c': { version: '3.0.0', dependencies: { b: '1' } },
        'node_modules/unneeded': { version: '1.0.0' },
      },
    };
    expect(Object.keys(lockedClosure(lock, 'apps/x', ['a', 'c']))).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/b',
      'node_modules/c',
    ]);
    expect(() => lockedClosure(lock, 'apps/x', ['none'])).toThrow('not in the lock file');
  });
});
