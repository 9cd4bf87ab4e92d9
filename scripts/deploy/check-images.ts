/**
 * `npm run check-images`: builds the container images, runs them, and sends one request.
 *
 * Each image runs as its user, with an empty environment, without capabilities and with a read-only root. Both must become healthy, the
 * answer must verify, and both must end on SIGTERM. The coordinator's image must stay below its limit.
 */
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { debianBases } from './debian-bases.js';
import { Buildah, findEngine, type ImageEngine, type RunOptions, type StartedImage } from './image-engine.js';
import { run } from './run-program.js';

const USAGE = `usage: npm run check-images -- [--bases registry|debian] [--build-arg NAME=IMAGE]... [--skip-build]

Builds deploy/*.Dockerfile with Docker, or with buildah and bubblewrap, and checks the images.

  --bases debian     Base images from Debian's packages and npm instead of the registry; needs buildah, mmdebstrap and root.
  --build-arg        Another base image for NODE_IMAGE, RUNTIME_IMAGE or POSTGRES_IMAGE.
  --skip-build       Checks the images of the run before.
`;

const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));
/** Decimal megabytes, the unit of registries. */
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
  for (const name of ['coordinator', 'agent']) await measure(engine, name);
  await answerOneRequest(engine);
  console.log('== both images hold');
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
  const args = { ...(options.bases === 'debian' ? await replacedBases(builder) : {}), ...options.buildArgs };
  for (const name of ['coordinator', 'agent']) {
    await builder.build({ file: join(ROOT, `deploy/${name}.Dockerfile`), context: ROOT, image: imageOf(name), args });
  }
}

async function replacedBases(builder: ImageEngine): Promise<Readonly<Record<string, string>>> {
  if (!(builder instanceof Buildah)) throw new Error('--bases debian needs buildah; Docker is running here and reaches a registry');
  return debianBases(builder, join(folder, 'bases'));
}

function imageOf(name: string): string {
  return `localhost/check-images/${name}`;
}

async function measure(builder: ImageEngine, name: string): Promise<void> {
  const layers = await builder.layers(imageOf(name));
  const bytes = layers.reduce((sum, layer) => sum + layer.bytes, 0);
  console.log(`\n== size of the ${name}'s image`);
  for (const layer of layers) if (layer.bytes > 0) console.log(`${formatMegabytes(layer.bytes)}  ${layer.step.slice(0, 110)}`);
  console.log(`${formatMegabytes(bytes)}  in total`);
  if (name === 'coordinator' && bytes > MAX_COORDINATOR_BYTES) {
    throw new Error(
      `the coordinator's image has ${formatMegabytes(bytes).trim()}, more than ${formatMegabytes(MAX_COORDINATOR_BYTES).trim()}`,
    );
  }
}

function formatMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1).padStart(7)} MB`;
}

async function answerOneRequest(runner: ImageEngine): Promise<void> {
  const port = await freePort();
  const baseUrl = `http://127.0.0.1:${port}`;
  const coordinator: RunOptions = {
    image: imageOf('coordinator'),
    dataDir: volume('coordinator', runner),
    env: { HOST: '127.0.0.1', PORT: String(port), DEVELOPMENT: '1', ALLOW_SIMULATED_ENCLAVE: '1', LOG_LEVEL: 'warn' },
    args: ['serve'],
  };
  const agent: RunOptions = {
    image: imageOf('agent'),
    dataDir: volume('agent', runner),
    env: { LOG_LEVEL: 'warn' },
    args: ['serve', '--coordinator', baseUrl, '--simulated-enclave', '--model', '/app/demo-models/pico/pico.gguf'],
  };
  const started: StartedImage[] = [];
  try {
    started.push(await runner.start(coordinator));
    await retryUntilSuccess('the coordinator is healthy', started, () => runner.checkHealth(coordinator));
    started.push(await runner.start(agent));
    const { api_key: key } = JSON.parse(readFileSync(join(coordinator.dataDir, 'coordinator/development-keys.json'), 'utf8')) as {
      api_key: string;
    };
    await retryUntilSuccess('a model is offered', started, async () => {
      const response = await fetch(`${baseUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
      const { data } = (await response.json()) as { data: readonly unknown[] };
      if (data.length === 0) throw new Error('there is no model');
    });
    await runner.checkHealth(agent);
    const { stdout } = await run('sh', [join(ROOT, 'scripts/verify-response.sh'), '--base-url', baseUrl, '--key', key]);
    console.log(`\n== an answer of the agent's image, through the coordinator's\n${stdout.trim()}`);
    await stop(started);
  } finally {
    for (const image of started.filter(isRunning)) image.signal('SIGKILL');
  }
}

function volume(name: string, { volumeOwner }: ImageEngine): string {
  const path = join(folder, name);
  mkdirSync(path, { mode: 0o700 });
  chownSync(path, volumeOwner, volumeOwner);
  return path;
}

async function retryUntilSuccess(what: string, images: readonly StartedImage[], attempt: () => Promise<void>): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS;
  for (;;) {
    if (!images.every(isRunning)) throw new Error(`an image ended before ${what}`);
    const problem = await attempt().then(
      () => null,
      (error: Error) => error,
    );
    if (problem === null) return console.log(`${what}`);
    if (performance.now() > deadline) throw new Error(`not in time: ${what}: ${problem.message}`);
    await new Promise((next) => setTimeout(next, POLL_MS));
  }
}

/** Both must drain and end by themselves. */
async function stop(images: readonly StartedImage[]): Promise<void> {
  for (const image of [...images].reverse()) {
    const ended = once(image.child, 'exit');
    image.signal('SIGTERM');
    const limit = setTimeout(() => image.signal('SIGKILL'), STOP_DEADLINE_MS);
    const [code, signal] = (await ended) as [number | null, NodeJS.Signals | null];
    clearTimeout(limit);
    if (code !== 0) throw new Error(`an image ended with ${signal ?? `exit code ${code}`} instead of 0`);
  }
  console.log('both ended on SIGTERM');
}

function isRunning({ child }: StartedImage): boolean {
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
