/**
 * Baseline program of the vision bench: uses the native class `LlamaContext` directly. Arguments: paths of the model and its projector.
 *
 * Over IPC, answers each `{prompt, image, tokens}` (`image`: a data URL) with `{promptMs, tokensPerSecond, tokens}`.
 */
import { createRequire } from 'node:module';

const [model, projector] = process.argv.slice(2);
const cpu = process.platform !== 'darwin';
const { LlamaContext } = createRequire(import.meta.url)(`@fugood/node-llama-${process.platform}-${process.arch}/index.node`);

const context = new LlamaContext({
  model,
  n_ctx: 4096,
  n_batch: 512,
  n_ubatch: 512,
  ...(cpu ? { n_threads: 1, n_gpu_layers: 0 } : {}),
});
context.initMultimodal({ path: projector, use_gpu: !cpu });

process.on('message', async (order) => process.send(await measure(order)));
process.on('disconnect', () => process.exit());
process.send({ ready: true });

async function measure({ prompt, image, tokens }) {
  context.clearCache();
  const begin = performance.now();
  const { timings, tokens_predicted } = await context.completion({
    prompt,
    media_paths: [image],
    n_predict: tokens,
    temperature: 0,
    dry_multiplier: 0,
  });
  const all = performance.now() - begin;
  // Decode time has one batch less than tokens, because the prompt's batch yields the first token.
  const decodeMs = timings.predicted_ms;
  return { promptMs: all - decodeMs, tokensPerSecond: (1000 * (tokens_predicted - 1)) / decodeMs, tokens: tokens_predicted };
}
