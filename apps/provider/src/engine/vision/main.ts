/** Entry file of the engine process for language models with an image projector. */
import { Outbox } from '../process/outbox.js';
import { Runtime } from '../process/runtime.js';
import { serveModel } from '../process/serve-model.js';
import { loadVisionModel } from './load-vision-model.js';

serveModel(async (settings, send) => {
  const { projectorPath } = settings;
  if (projectorPath === undefined) throw new Error('a model with image input needs a projector file');
  return new Runtime(await loadVisionModel({ ...settings, projectorPath }), new Outbox(send));
});
