/** Estimates before a download, and the quantizations that a repository offers. */
import { expect, it } from 'vitest';
import { expectedModel } from '../../src/models/expected-model.js';
import { preferredVariant, variantsOf } from '../../src/models/store/model-repository.js';

const machine = { memoryBytes: 16e9, bandwidthGbs: 100, reserve: null };

it('estimates fit by file size, and speed by the active parameters in the name', () => {
  const dense = expectedModel({ bytes: 7e9, name: 'owner/Dense-9B-GGUF' }, machine);
  expect(dense).toMatchObject({ fits: true, tokensPerSecond: 10 });
  const experts = expectedModel({ bytes: 18e9, name: 'owner/Mixed-30B-A3B-GGUF' }, machine);
  expect(experts.fits).toBe(false);
  expect(experts.tokensPerSecond).toBeCloseTo(38.9, 1);
  expect(expectedModel({ bytes: 7e9, name: 'x' }, { ...machine, reserve: 10e9 }).fits).toBe(false);
  expect(expectedModel({ bytes: 7e9, name: 'x' }, { ...machine, bandwidthGbs: 0 }).tokensPerSecond).toBeNull();
});

it('names the quantizations of a repository, and bytes with the projector, as pull takes them', () => {
  const entry = (path: string, size: number) => ({ type: 'file', path, size });
  const variants = variantsOf('owner/name', [
    entry('name-Q8_0.gguf', 80),
    entry('name-Q4_K_M.gguf', 40),
    entry('name-IQ4_XS.gguf', 30),
    entry('BF16/name-BF16-00001-of-00002.gguf', 100),
    entry('BF16/name-BF16-00002-of-00002.gguf', 60),
    entry('mmproj-name-F16.gguf', 5),
    entry('README.md', 1),
  ]);
  expect(variants.map(({ source, bytes }) => [source, bytes])).toEqual([
    ['hf:owner/name:IQ4_XS', 35],
    ['hf:owner/name:Q4_K_M', 45],
    ['hf:owner/name:Q8_0', 85],
    ['hf:owner/name:BF16', 165],
  ]);
  expect(preferredVariant(variants)?.quantization).toBe('Q4_K_M');
  expect(preferredVariant(variants.slice(0, 1))?.quantization).toBe('IQ4_XS');
  expect(variantsOf('owner/one', [entry('model.gguf', 9)])).toMatchObject([{ source: 'hf:owner/one', quantization: null }]);
  // Two files of one label cannot be told apart in a command.
  expect(variantsOf('owner/two', [entry('a-Q4_0.gguf', 1), entry('b-Q4_0.gguf', 2)])).toEqual([]);
});
