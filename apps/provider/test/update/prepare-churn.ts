/** Prepares a release repeatedly until killed: `prepare-churn PREFIX RELEASE`. */
import type { Release } from '@inference/protocol';
import { prepare } from '../../src/update/download-release.js';
import { prune } from '../../src/update/layout.js';

const [prefix = '', text = ''] = process.argv.slice(2);
const release = JSON.parse(text) as Release;
process.stdout.write('begins\n');
for (;;) {
  await prepare({
    prefix,
    release,
    onStep: () => {},
    onProgress: () => {},
    signal: new AbortController().signal,
    tuning: { chunkBytes: 20_000 },
  });
  prune(prefix, ['1.0.0']);
}
