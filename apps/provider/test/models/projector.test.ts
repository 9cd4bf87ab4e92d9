/** Vision models: facts of their projectors, the choice among a repository's projectors, and memory. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_IMAGE_TOKENS } from '@inference/protocol';
import { describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { modelChoices } from '../../src/cli/input/model-choices.js';
import { memoryNeed, planCapacity } from '../../src/models/capacity.js';
import { expectedModel } from '../../src/models/expected-model.js';
import { readGgufHeader } from '../../src/models/gguf-header.js';
import { readModelFacts } from '../../src/models/model-facts.js';
import { adjacentProjectorPath, maxImagesOf, readProjector } from '../../src/models/projector.js';
import { modelRepositoryOf, repositoryProjectorFile, variantsOf } from '../../src/models/store/model-repository.js';
import { ModelStore } from '../../src/models/store/model-store.js';
import { repositoryProjector } from '../../src/models/store/repository-projector.js';
import { demoModel } from '../demo-model.js';
import { writeProjectorHeader } from '../vision-model.js';

const dir = temporaryDirectory('projectors');
const { values } = readGgufHeader(demoModel());
const outputLength = Number(values.get(`${values.get('general.architecture')}.embedding_length`));
const projector = writeProjectorHeader(dir, 'mmproj-F16.gguf', { outputLength });

describe('a projector', () => {
  test('belongs to the facts of its model: last of the files, in size and memory, not in speed', () => {
    const alone = readModelFacts(demoModel());
    const facts = readModelFacts(demoModel(), projector);
    expect(alone.vision).toBeNull();
    expect(facts).toMatchObject({ id: alone.id, files: [demoModel(), projector], activeBytes: alone.activeBytes });
    const { projectorBytes = 0, imageBytes = 0 } = facts.vision ?? {};
    expect(facts.fileBytes).toBe(alone.fileBytes + projectorBytes);
    // 4,096 patches with some 18,000 floats each.
    expect(imageBytes).toBeGreaterThan(250e6);
    const capacity = planCapacity(facts, { slots: 1, context: 1024, budget: 8e9 });
    expect(memoryNeed(facts, capacity)).toBe(memoryNeed(alone, capacity) + projectorBytes + imageBytes);
  });

  test.each([
    ['gemma3', {}, 256],
    ['gemma4v', { patchSize: 16 }, 280],
    ['qwen3vl_merger', { imageSize: 768, patchSize: 16, more: { spatial_merge_size: 2 } }, 4096],
    ['idefics3', { imageSize: 512, patchSize: 16, more: { 'projector.scale_factor': 4, preproc_image_size: 2048 } }, 17 * 64],
    ['internvl', { imageSize: 448, more: { 'projector.scale_factor': 2 } }, 13 * 256],
    ['mlp', { imageSize: 336 }, 576],
    ['phi4', { patchSize: 16, more: { image_max_pixels: 921_600 } }, 3600],
    ['a-new-one', {}, 4096],
  ])('of type %s bounds the tokens of an image', (type, shape, tokens) => {
    const path = writeProjectorHeader(dir, `${type}.gguf`, { type, outputLength, ...shape });
    const { maxImageTokens } = readProjector(path, outputLength);
    expect(maxImageTokens).toBeGreaterThan(tokens);
    expect(maxImageTokens).toBeLessThan(tokens * 1.2 + 32);
  });

  test('never offers more tokens of an image than the protocol allows', () => {
    const path = writeProjectorHeader(dir, 'hunyuanvl.gguf', { type: 'hunyuanvl', outputLength });
    expect(readProjector(path, outputLength).maxImageTokens).toBe(MAX_IMAGE_TOKENS);
  });

  test('is refused without a model, with another model, for audio, and for models that read no images', () => {
    expect(() => readModelFacts(projector)).toThrow(/is the projector of a vision model and not a language model/);
    expect(() => readModelFacts(demoModel(), demoModel())).toThrow(/is not a projector/);
    const other = writeProjectorHeader(dir, 'other.gguf', { outputLength: outputLength + 64 });
    expect(() => readModelFacts(demoModel(), other)).toThrow(
      `belongs to another model: it writes embeddings of length ${outputLength + 64}, and this model reads ${outputLength}`,
    );
    const audio = writeProjectorHeader(dir, 'audio.gguf', { outputLength, encoder: 'audio' });
    expect(() => readModelFacts(demoModel(), audio)).toThrow(/only projectors for images are supported/);
    expect(() => readModelFacts(demoModel(), join(dir, 'missing.gguf'))).toThrow(/there is no model file/);
    expect(() => readModelFacts(dir, projector)).toThrow(/takes no projector/);
  });

  test('beside a local model is used by its name, unless it is for audio', () => {
    const model = join(dir, 'local.gguf');
    copyFileSync(demoModel(), model);
    expect(adjacentProjectorPath(model)).toBeNull();
    writeProjectorHeader(dir, 'mmproj-local.gguf', { outputLength, encoder: 'audio' });
    expect(adjacentProjectorPath(model)).toBeNull();
    const path = writeProjectorHeader(dir, 'mmproj-local.gguf', { outputLength });
    expect(modelChoices([model], new ModelStore(dir))).toMatchObject([{ path: model, projectorPath: path }]);
    writeFileSync(path, 'damaged');
    expect(() => readModelFacts(model, adjacentProjectorPath(model))).toThrow(/is damaged/);
  });

  test('leaves room for text in the number of images', () => {
    expect([maxImagesOf(131_072, 272), maxImagesOf(8192, 4112), maxImagesOf(2048, 4112), maxImagesOf(16_384, 4112)]).toEqual([20, 1, 1, 3]);
  });
});

describe('the projector of a repository', () => {
  const choose = (model: string, names: readonly string[], requested: string | null = null) =>
    repositoryProjector(
      'owner/repo',
      model,
      names.map((path) => ({ path })),
      requested,
    )?.path;

  test.each([
    ['gemma-3-4b-it-Q4_K_M.gguf', ['mmproj-BF16.gguf', 'mmproj-F16.gguf', 'mmproj-F32.gguf'], 'mmproj-F16.gguf'],
    ['Qwen2.5-VL-7B-Q4_K_M.gguf', ['mmproj-Qwen2.5-VL-7B-BF16.gguf', 'mmproj-Qwen2.5-VL-7B-Q8_0.gguf'], 'mmproj-Qwen2.5-VL-7B-Q8_0.gguf'],
    ['g-4b-q4_0.gguf', ['mmproj-model-f16-4B.gguf', 'mmproj-model-f16-12B.gguf'], 'mmproj-model-f16-4B.gguf'],
    ['small/m-Q8_0.gguf', ['large/mmproj-F16.gguf', 'small/mmproj-F16.gguf'], 'small/mmproj-F16.gguf'],
    ['X.Q4_K_S.gguf', ['X.mmproj-Q8_0.gguf', 'X.mmproj-f16.gguf'], 'X.mmproj-f16.gguf'],
    ['plain-Q4_0.gguf', ['README.md', 'plain-Q8_0.gguf'], undefined],
  ])('for %s', (model, names, expected) => {
    expect(choose(model, names)).toBe(expected);
  });

  test('has a name of its own in the store, also among projectors of one name in several folders', () => {
    const paths = ['small/m-Q8_0.gguf', 'small/mmproj-F16.gguf', 'large/m-Q4_0.gguf', 'large/mmproj-F16.gguf'];
    const entries = paths.map((each) => ({ type: 'file', path: each, size: 1 }));
    const nameFor = (quantization: string) =>
      repositoryProjectorFile({ kind: 'repository', repository: 'owner/repo', quantization }, entries, null, modelRepositoryOf({}))?.name;
    expect(nameFor('Q8_0')).toBe('owner--repo--small--mmproj-F16.gguf');
    expect(nameFor('Q4_0')).toBe('owner--repo--large--mmproj-F16.gguf');
  });

  test('is the requested one, by name or precision, and asks where names leave the choice open', () => {
    const names = ['mmproj-F16.gguf', 'mmproj-BF16.gguf'];
    expect(choose('m-Q4_0.gguf', names, 'bf16')).toBe('mmproj-BF16.gguf');
    expect(choose('m-Q4_0.gguf', names, 'mmproj-bf16.gguf')).toBe('mmproj-BF16.gguf');
    expect(() => choose('m-Q4_0.gguf', names, 'Q8_0')).toThrow(/has no single projector Q8_0: it holds mmproj-F16/);
    expect(() => choose('m-Q4_0.gguf', ['mmproj-a-F16.gguf', 'mmproj-b-F16.gguf'])).toThrow(/--projector: it holds .*--text-only/);
  });

  test('counts in size and memory before the download, and not in speed', () => {
    const entry = (path: string, size: number) => ({ type: 'file', path, size });
    const [variant] = variantsOf('owner/name', [entry('name-Q4_K_M.gguf', 4e9), entry('mmproj-F16.gguf', 1e9)]);
    expect(variant).toMatchObject({ bytes: 5e9, projectorBytes: 1e9 });
    const machine = { memoryBytes: 16e9, bandwidthGbs: 100, reserve: null };
    const [text, vision] = [
      expectedModel({ bytes: 4e9, name: 'x' }, machine),
      expectedModel({ bytes: 5e9, projectorBytes: 1e9, name: 'x' }, machine),
    ];
    expect(vision.tokensPerSecond).toBe(text.tokensPerSecond);
    expect(vision.memoryBytes).toBe(text.memoryBytes + 2e9);
  });
});
