/** The packed archive works by itself: its examples run against a scripted network. */
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packClient } from '../../../scripts/client-package.js';
import { hello } from './answers.js';
import { MODEL, ScriptedNetwork, scriptedProvider, serveNetwork } from './scripted-network.js';

const MODULES = fileURLToPath(new URL('../../../node_modules', import.meta.url));
const run = promisify(execFile);
let project: string;

/** Installs the archive as npm does, with links in place of downloads. */
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'inference-client-package-'));
  const archive = packClient(project);
  const installed = join(project, 'node_modules/@inference/client');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['xzf', archive, '--strip-components=1', '-C', installed]);
  const { dependencies } = manifestIn(installed);
  const external = Object.keys(dependencies).filter((name) => !name.startsWith('@inference/'));
  for (const name of [...external, 'openai', '@anthropic-ai/sdk']) {
    mkdirSync(join(project, 'node_modules', name, '..'), { recursive: true });
    symlinkSync(join(MODULES, name), join(project, 'node_modules', name));
  }
  cpSync(join(installed, 'examples'), join(project, 'examples'), { recursive: true });
});

afterAll(() => rmSync(project, { recursive: true }));

interface PackedManifest {
  readonly bin: Record<string, string>;
  readonly dependencies: Record<string, string>;
  readonly bundleDependencies: string[];
}

function manifestIn(folder: string): PackedManifest {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as PackedManifest;
}

describe('the package', () => {
  test('contains our own packages, and pins all others', () => {
    const installed = join(project, 'node_modules/@inference/client');
    const { dependencies, bundleDependencies } = manifestIn(installed);
    expect(bundleDependencies).toEqual(['@inference/formats', '@inference/protocol', '@inference/verifier']);
    expect(readdirSync(join(installed, 'node_modules/@inference')).sort()).toEqual(['formats', 'protocol', 'verifier']);
    for (const version of Object.values(dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    expect(files.filter((path) => /\.(?:node|ts|map)$/.test(path) && !path.endsWith('.d.ts'))).toEqual([]);
  });

  test.each(['openai.mjs', 'anthropic.mjs'])('runs the example %s', async (example) => {
    const now = Date.now();
    const network = new ScriptedNetwork(hello, 1, [scriptedProvider({ now, isSimulated: true })]);
    network.isSimulated = true;
    network.now = now;
    const { base, close } = await serveNetwork(network);
    const env = { ...process.env, INFERENCE_BASE_URL: base, INFERENCE_API_KEY: 'sk-test', INFERENCE_MODEL: MODEL, ALLOW_SIMULATED: '1' };
    try {
      const { stdout } = await run(process.execPath, [join(project, 'examples', example)], { env });
      expect(stdout).toContain('Hello');
      expect(stdout).toContain(`verified: simulated machine ${network.providers[0]?.record.provider_id}`);
    } finally {
      close();
    }
  });

  test.each([
    ['inference-proxy', ['--help'], 'usage: inference-proxy '],
    ['inference-verify', ['proxy', '--help'], 'usage: inference-verify proxy '],
  ])('runs the proxy as %s', async (name, args, usage) => {
    const installed = join(project, 'node_modules/@inference/client');
    const { stdout } = await run(process.execPath, [join(installed, manifestIn(installed).bin[name] ?? ''), ...args]);
    expect(stdout).toContain(usage);
  });
});
