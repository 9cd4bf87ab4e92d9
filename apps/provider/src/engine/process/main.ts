/** Entry file of the engine process, which has the model, but no sockets and no keys. */
import { endWithParent } from '../../model-process/end-with-parent.js';
import type { FromEngine, ToEngine } from '../messages.js';
import { Embedder } from './embedder.js';
import { loadModel } from './load-model.js';
import { Outbox } from './outbox.js';
import { Runtime } from './runtime.js';

let runtime: Runtime | null = null;
let embedder: Embedder | null = null;

function send(message: FromEngine, written: () => void = () => {}): void {
  process.send?.(message, undefined, undefined, written);
}

async function load(message: ToEngine & { type: 'load' }): Promise<void> {
  try {
    if (message.settings.type === 'embedding') {
      embedder = await Embedder.load(message.settings, send);
      send({ type: 'loaded', facts: embedder.facts });
      return;
    }
    runtime = new Runtime(await loadModel(message.settings), new Outbox(send));
    send({ type: 'loaded', facts: runtime.facts });
  } catch (error) {
    send({ type: 'load_failed', message: error instanceof Error ? error.message : 'unknown' });
  }
}

process.on('message', (message: ToEngine) => {
  switch (message.type) {
    case 'load':
      void load(message);
      return;
    case 'start':
      void runtime?.run(message.job, message.request);
      return;
    case 'embed':
      void embedder?.run(message.job, message.request);
      return;
    case 'cancel':
      embedder?.cancel(message.job);
      runtime?.control(message.job)?.cancel();
      return;
    case 'pause':
      runtime?.control(message.job)?.pause();
      return;
    case 'resume':
      runtime?.control(message.job)?.resume();
      return;
    case 'ping':
      send({ type: 'pong' });
      return;
    default:
      message satisfies never;
  }
});

endWithParent();
