import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { openModels } from '../../src/daemon/open-models.js';
import { FileHashes } from '../../src/models/file-hash.js';
import { demoModel } from '../demo-model.js';

const dir = temporaryDirectory('open-models');

it('hashes the other models when a file cannot be read', async () => {
  const choices = ['first', 'second'].map((id) => ({ id, path: join(dir, `${id}.gguf`), keep: { kind: 'on_demand' } as const }));
  for (const { path } of choices) cpSync(demoModel(), path);
  const hashes = new FileHashes(join(dir, 'hashes.json'));
  let opened: ReturnType<typeof openModels> | null = null;
  await new Promise<void>((resolve) => {
    opened = openModels({
      choices,
      slots: 1,
      context: 512,
      reserve: 0,
      totalMemory: 0,
      hashes,
      addOnPath: join(dir, 'add-on'),
      confinement: { kind: 'none', why: null, wrap: [] },
      onEvent: () => {},
      onChange: resolve,
    });
    // The headers have been read, and the hashing has not begun.
    rmSync(choices[0]?.path ?? '');
  });
  const offers = (opened as ReturnType<typeof openModels> | null)?.models.offers();
  expect(offers?.map(({ id, file_sha256: sha256 }) => [id, sha256])).toEqual([
    ['first', undefined],
    ['second', await hashes.hashFile(choices[1]?.path ?? '')],
  ]);
}, 10_000);
