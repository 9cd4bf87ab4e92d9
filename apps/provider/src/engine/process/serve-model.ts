/**
 * `serveModel` loads a model in an engine process and handles the daemon's messages.
 *
 * The process gets no keys (`engineEnvironment`), and no network access where the system can deny it (`findConfinement`).
 */
import { endWithParent } from '../../model-process/end-with-parent.js';
import type { EngineSettings, FromEngine, ToEngine } from '../messages.js';
import type { Embedder } from './embedder.js';
import type { Runtime } from './runtime.js';

export type SendToDaemon = (message: FromEngine, written?: () => void) => void;
/** Throws an Error whose message is meant for the Mac's owner. */
export type LoadModel = (settings: EngineSettings, send: SendToDaemon) => Promise<Runtime | Embedder>;

/** Called once by the entry file of the process. */
export function serveModel(load: LoadModel): void {
  let model: Runtime | Embedder | null = null;
  process.on('message', (message: ToEngine) => {
    const runtime = model !== null && 'control' in model ? model : null;
    const embedder = model !== null && 'cancel' in model ? model : null;
    switch (message.type) {
      case 'load':
        void loadAndReport(load, message.settings).then((loaded) => (model = loaded));
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
}

function send(message: FromEngine, written: () => void = () => {}): void {
  process.send?.(message, undefined, undefined, written);
}

/** Resolves to null if loading failed. */
async function loadAndReport(load: LoadModel, settings: EngineSettings): Promise<Runtime | Embedder | null> {
  try {
    const model = await load(settings, send);
    send({ type: 'loaded', facts: model.facts });
    return model;
  } catch (error) {
    send({ type: 'load_failed', message: error instanceof Error ? error.message : 'unknown' });
    return null;
  }
}
