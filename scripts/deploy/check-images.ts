/**
 * `npm run check-images`: builds the images of coordinator and agent, runs both, and sends one request through both.
 *
 * Containers run as the image's user, without capabilities, on a read-only root. Both must become healthy, give a response that
 * verifies, and exit on SIGTERM. Needs root, because the containers' volumes belong to the image's user.
 */
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { debianBases } from './debian-bases.js';
import { Buildah, findEngine, type ImageEngine, type RunningContainer, type RunOptions } from './image-engine.js';
import { run } from './run-program.js';

const USAGE = `usage: npm run check-images -- [--bases registry|debian] [--build-arg NAME=IMAGE]... [--skip-build]

Builds deploy/*.Dockerfile with Docker, or else with buildah and bubblewrap, and checks the images.

  --bases debian     Makes base images from Debian and npm packages, without an image registry. Needs buildah, mmdebstrap and root.
  --build-arg        Replaces the base image NODE_IMAGE, RUNTIME_IMAGE or POSTGRES_IMAGE.
  --skip-build       Checks the images that the previous run built.
`;

const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));
const MAX_COORDINATOR_BYTES = 250e6;
const START_DEADLINE_MS = 180_000;
const STOP_DEADLINE_MS = 60_000;
const POLL_MS = 200;

const options = readOptions();
const engine = await findEngine();
const folder = mkdtempSync(join(tmpdir(), 'check-images-'));
try {
  console.log(`== images with ${engine.name}`);
  if (!options.skipBuild) await buildImages(engine);
  for (const name of ['coordinator', 'agent']) await checkSize(engine, name);
  await checkRequest(engine);
  console.log('== both images passed');
} finally {
  await engine.close();
  rmSync(folder, { recursive: true, force: true });
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        bases: { type: 'string', default: 'registry' },
        'build-arg': { type: 'string', multiple: true },
        'skip-build': { type: 'boolean', default: false },
      },
    });
    const buildArgs = Object.fromEntries((values['build-arg'] ?? []).map((text) => /^(\w+)=(.+)$/.exec(text)?.slice(1) ?? ['', '']));
    if (!['registry', 'debian'].includes(values.bases) || '' in buildArgs) throw new TypeError('wrong value of an option');
    return { bases: values.bases, buildArgs, skipBuild: values['skip-build'] };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${USAGE}`);
    process.exit(2);
  }
}

async function buildImages(builder: ImageEngine): Promise<void> {
  const args = { ...(options.bases === 'debian' ? await makeDebianBases(builder) : {}), ...options.buildArgs };
  for (const name of ['coordinator', 'agent']) {
    await builder.build({ file: join(ROOT, `deploy/${name}.Dockerfile`), context: ROOT, image: imageOf(name), args });
  }
}

async function makeDebianBases(builder: ImageEngine): Promise<Readonly<Record<string, string>>> {
  if (!(builder instanceof Buildah)) throw new Error('--bases debian needs buildah: stop Docker, or use the registry');
  return debianBases(builder, join(folder, 'bases'));
}

function imageOf(name: string): string {
  return `localhost/check-images/${name}`;
}

/** Prints the size of each layer. Throws when the coordinator's image is too large. */
async function checkSize(builder: ImageEngine, name: string): Promise<void> {
  const layers = await builder.layers(imageOf(name));
  const bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
  console.log(`\n== size of the ${name}'s image`);
  for (const layer of layers) if (layer.bytes > 0) console.log(`${formatMegabytes(layer.bytes)}  ${layer.step.slice(0, 110)}`);
  console.log(`${formatMegabytes(bytes)}  in total`);
  if (name === 'coordinator' && bytes > MAX_COORDINATOR_BYTES) {
    throw new Error(
      `the coordinator's image has ${formatMegabytes(bytes).trim()}; the maximum is ${formatMegabytes(MAX_COORDINATOR_BYTES).trim()}`,
    );
  }
}

function formatMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1).padStart(7)} MB`;
}

async function checkRequest(runner: ImageEngine): Promise<void> {
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const coordinator: RunOptions = {
    image: imageOf('coordinator'),
    dataDir: makeVolume('coordinator', runner),
    env: { HOST: '127.0.0.1', PORT: String(port), DEVELOPMENT: '1', ALLOW_SIMULATED_ENCLAVE: '1', LOG_LEVEL: 'warn' },
    args: ['serve'],
  };
  const agent: RunOptions = {
    image: imageOf('agent'),
    dataDir: makeVolume('agent', runner),
    env: { LOG_LEVEL: 'warn' },
    args: ['serve', '--coordinator', baseUrl, '--simulated-enclave', '--model', '/app/demo-models/pico/pico.gguf'],
  };
  const started: RunningContainer[] = [];
  try {
    started.push(await runner.start(coordinator));
    await retryUntilSuccess('the coordinator is healthy', started, () => runner.checkHealth(coordinator));
    started.push(await runner.start(agent));
    const { api_key: key } = JSON.parse(readFileSync(join(coordinator.dataDir, 'coordinator/development-keys.json'), 'utf8')) as {
      api_key: string;
    };
    await retryUntilSuccess('the agent offers a model', started, async () => {
      const response = await fetch(`${baseUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      const { data } = (await response.json()) as { data: readonly unknown[] };
      if (data.length === 0) throw new Error('no model is listed');
    });
    await runner.checkHealth(agent);
    const { stdout } = await run('sh', [join(ROOT, 'scripts/verify-response.sh'), '--base-url', baseUrl, '--key', key]);
    console.log(`\n== verified response of the agent, through the coordinator\n${stdout.trim()}`);
    await stop(started);
  } finally {
    for (const container of started.filter(isRunning)) container.signal('SIGKILL');
  }
}

/** Creates a folder for a container's volume /data. */
function makeVolume(name: string, { volumeOwner }: ImageEngine): string {
  const path = join(folder, name);
  mkdirSync(path, { mode: 0o700 });
  chownSync(path, volumeOwner, volumeOwner);
  return path;
}

/** Repeats an attempt until success, and prints `goal`. Throws after `START_DEADLINE_MS`, or when a container exits. */
async function retryUntilSuccess(goal: string, containers: readonly RunningContainer[], attempt: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  for (;;) {
    if (!containers.every(isRunning)) throw new Error(`a container exited before this was true: ${goal}`);
    const problem = await attempt().then(
      () => null,
      (error: Error) => error,
    );
    if (problem === null) return console.log(goal);
    if (performance.now() > deadline) throw new Error(`not true within ${START_DEADLINE_MS / 1000} s: ${goal}: ${problem.message}`);
    await new Promise((next) => setTimeout(next, POLL_MS));
  }
}

/** Sends SIGTERM, the agent first. Throws unless each container drains and exits with code 0. */
async function stop(containers: readonly RunningContainer[]): Promise<void> {
  for (const container of [...containers].reverse()) {
    const ended = once(container.child, 'exit');
    container.signal('SIGTERM');
    const limit = setTimeout(() => container.signal('SIGKILL'), STOP_DEADLINE_MS);
    const [code, signal] = (await ended) as [number | null, NodeJS.Signals | null];
    clearTimeout(limit);
    if (code !== 0) throw new Error(`a container ended with ${signal ?? `exit code ${code}`} instead of exit code 0`);
  }
  console.log('both containers exited on SIGTERM');
}

function isRunning({ child }: RunningContainer): boolean {
  return child.exitCode === null && child.signalCode === null;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
