/** Writes the published test vectors of end-to-end mode: `npx tsx scripts/e2e-vectors.ts`. A test fails if they are outdated. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildVectors } from '../packages/protocol/test/e2e/vectors.js';

const path = join(import.meta.dirname, '..', 'docs', 'e2e-vectors.json');
writeFileSync(path, `${JSON.stringify(buildVectors(), null, 2)}\n`);
console.log(path);
