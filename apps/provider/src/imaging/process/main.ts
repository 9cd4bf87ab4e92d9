/** Entry file of the image process: loads one image model and handles the daemon's messages. */
import { Worker } from 'node:worker_threads';
import { endWithParent } from '../../model-process/end-with-parent.js';
import type { FromImageEngine, ImageSettings, ToImageEngine } from '../messages.js';
import type { ImageBackend } from './image-backend.js';
import { ImageJobQueue } from './image-job-queue.js';

let queue: ImageJobQueue | null = null;

function send(message: FromImageEngine, sent: () => void = () => {}): void {
  process.send?.(message, undefined, undefined, sent);
}

/** Imports only the needed backend, because their native code is large. */
async function loadBackend(settings: ImageSettings): Promise<ImageBackend> {
  switch (settings.engine) {
    case 'onnx':
      return await (await import('./onnx/onnx-backend.js')).OnnxBackend.load(settings);
    case 'stable-diffusion.cpp':
      return await (await import('./stable-diffusion-cpp/stable-diffusion-cpp-backend.js')).StableDiffusionCppBackend.load(settings);
    default:
      return settings.engine satisfies never;
  }
}

async function load(settings: ImageSettings): Promise<void> {
  try {
    if (settings.memoryLimit !== null) guardMemory(settings.memoryLimit);
    const backend = await loadBackend(settings);
    queue = new ImageJobQueue(backend, send);
    send({ type: 'loaded', facts: backend.facts });
  } catch (error) {
    send({ type: 'load_failed', message: error instanceof Error ? error.message : 'unknown' });
  }
}

const CHECK_EVERY_MS = 100;

/** Source of the worker thread in `guardMemory`. */
const GUARD = `
const { workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
setInterval(() => {
  if (process.memoryUsage.rss() <= workerData.limit) return;
  writeSync(2, 'the image process exceeded its memory limit and was killed\\n');
  process.kill(process.pid, 'SIGKILL');
}, workerData.everyMs);
`;

/** Kills this process if its memory exceeds `limit` bytes. Checks in a worker thread, because steps block the main thread. */
function guardMemory(limit: number): void {
  const guard = new Worker(GUARD, { eval: true, workerData: { limit, everyMs: CHECK_EVERY_MS } });
  guard.unref();
}

process.on('message', (message: ToImageEngine) => {
  switch (message.type) {
    case 'load':
      void load(message.settings);
      return;
    case 'generate':
      queue?.add(message.job, message.request);
      return;
    case 'cancel':
      queue?.cancel(message.job);
      return;
    case 'ping':
      send({ type: 'pong' });
      return;
    default:
      message satisfies never;
  }
});

endWithParent();
