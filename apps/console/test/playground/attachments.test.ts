import { describe, expect, it } from 'vitest';
import type { ModelEntry } from '../../src/features/account/models.js';
import { imageProblem, isImageDataUri, textOnlyReason } from '../../src/pages/playground/attachments/question-image.js';
import { pastedImages, scaledSize } from '../../src/pages/playground/attachments/use-attachments.js';

const metadata = { model_type: 'text', provider_count: 1, trust_level: 'software' };
const model = (id: string, ...input_modalities: string[]): ModelEntry => ({ id, architecture: { input_modalities }, metadata });
const image = (chars: number) => ({ name: 'big.png', dataUri: 'x'.repeat(chars) });

describe('attached images', () => {
  it('need a model that reads images, in every column', () => {
    const models = [model('see', 'text', 'image'), model('read', 'text'), { id: 'old', metadata }];
    expect(textOnlyReason(models, ['see'])).toBeNull();
    expect(textOnlyReason(models, ['see', 'read'])).toBe('read reads text only. Choose a model that reads images.');
    expect(textOnlyReason(models, ['old'])).toMatch(/^old reads text only/);
    expect(textOnlyReason([model('read', 'text')], ['read'])).toBe('No connected machine serves a model that reads images.');
  });

  it('are bounded in number and size, of a whole conversation', () => {
    expect(imageProblem(Array(19).fill(image(1)), image(1))).toBeNull();
    expect(imageProblem(Array(20).fill(image(1)), image(1))).toMatch(/at most 20 images/);
    expect(imageProblem([image(20_000_000)], image(4_000_000))).toBeNull();
    expect(imageProblem([image(20_000_000)], image(6_000_000))).toMatch(/^big\.png is too large together/);
  });

  it('are scaled down to 2048 pixels, and never up', () => {
    expect(scaledSize(4096, 1024)).toEqual({ width: 2048, height: 512 });
    expect(scaledSize(1, 100_000)).toEqual({ width: 1, height: 2048 });
    expect(scaledSize(64, 48)).toEqual({ width: 64, height: 48 });
  });

  it('are taken from a paste, unless it is a paste of text', () => {
    const file = (type: string) => ({ type }) as File;
    const paste = (types: string[], ...files: File[]) => pastedImages({ types, files: files as unknown as FileList });
    const png = file('image/png');
    expect(paste(['Files'], png, file('application/pdf'))).toEqual([png]);
    // Image file copied in a file manager.
    expect(paste(['text/plain', 'Files'], png)).toEqual([png]);
    // Spreadsheet cells, which some programs also copy as an image.
    expect(paste(['text/plain', 'text/html', 'Files'], png)).toEqual([]);
  });

  it('are shown from the storage of the tab only as data', () => {
    expect(isImageDataUri('data:image/png;base64,AA==')).toBe(true);
    for (const text of ['https://example.com/a.png', 'data:image/svg+xml;base64,AA==', 'data:image/png;base64,"']) {
      expect(isImageDataUri(text)).toBe(false);
    }
  });
});
