/** Entry file of the engine process for text and embedding models. */
import { Embedder } from './embedder.js';
import { loadModel } from './load-model.js';
import { Outbox } from './outbox.js';
import { Runtime } from './runtime.js';
import { serveModel } from './serve-model.js';

serveModel(async (settings, send) =>
  settings.type === 'embedding' ? await Embedder.load(settings, send) : new Runtime(await loadModel(settings), new Outbox(send)),
);
