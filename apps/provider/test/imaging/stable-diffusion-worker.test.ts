/** Message channel of the worker for stable-diffusion.cpp, with stand-ins for the Bare runtime and the add-on. */
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';

const WORKER = createRequire(import.meta.url).resolve('#stable-diffusion-worker');

class Channel extends EventEmitter {
  readonly written: string[] = [];
  write(text: string): void {
    this.written.push(text);
  }
}

/** Runs the worker. Returns the channel, and the files of the models that the worker loaded. */
function startWorker(): { channel: Channel; loaded: unknown[] } {
  const channel = new Channel();
  const loaded: unknown[] = [];
  class Model {
    constructor({ files }: { files: unknown }) {
      loaded.push(files);
    }
    async load(): Promise<void> {}
  }
  const modules: Record<string, unknown> = {
    // `new` returns the object that a plain function returns.
    '/packages/bare-pipe': function Pipe() {
      return channel;
    },
    '/packages/bare-os': {},
    '/packages/@qvac/diffusion-cpp': { ImgStableDiffusion: Model },
  };
  const Bare = { argv: ['bare', 'worker.cjs', '/packages'] };
  runInNewContext(readFileSync(WORKER, 'utf8'), { Bare, Buffer, Uint8Array, require: (name: string) => modules[name] });
  return { channel, loaded };
}

it.each([1, 2, 3, 7, 1000])('reads messages whose bytes come in chunks of %d', (size) => {
  const { channel, loaded } = startWorker();
  const files = [{ model: '/Modèles/😀.gguf' }, { model: '/模型/b.gguf' }];
  const bytes = Buffer.from(files.map((each) => `${JSON.stringify({ type: 'load', files: each, config: {} })}\n`).join(''));
  for (let at = 0; at < bytes.length; at += size) channel.emit('data', bytes.subarray(at, at + size));
  expect(JSON.parse(JSON.stringify(loaded))).toEqual(files);
});
