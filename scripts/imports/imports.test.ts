import { describe, expect, it } from 'vitest';
import { findImports } from './read.js';
import { checkImport, type Layer, layerOf } from './rules.js';

function check(path: string, specifier: string): string | null {
  return checkImport(layerOf(path) as Layer, path, specifier);
}

describe('import directions', () => {
  it('finds static, type-only, re-exported and dynamic imports', () => {
    const text = `import a from './a.js';\nimport type { B } from './b.js';\nexport * from './c.js';\nexport { d } from './d.js';\nconst e = await import('./e.js');\n`;
    expect(findImports('x.ts', text)).toEqual(['./a.js', './b.js', './c.js', './d.js', './e.js']);
  });

  it.each([
    ['packages/protocol/src/wire/frame.ts', '../bytes.js'],
    ['packages/protocol/src/crypto/hpke.ts', 'node:crypto'],
    ['packages/protocol/src/crypto/hpke.ts', '../ids.js'],
    ['packages/formats/src/x.ts', '@inference/protocol'],
    ['apps/coordinator/src/app.ts', './fleet/registry.js'],
    ['apps/coordinator/src/inference/run.ts', '../fleet/registry.js'],
    ['apps/coordinator/src/routes/models.ts', 'fastify'],
  ])('%s may import %s', (path, specifier) => {
    expect(check(path, specifier)).toBeNull();
  });

  it.each([
    ['packages/protocol/src/bytes.ts', 'node:crypto', /pure/],
    ['packages/protocol/src/bytes.ts', 'fs', /pure/],
    ['packages/protocol/src/bytes.ts', './crypto/hpke.js', /may use only/],
    ['packages/formats/src/x.ts', '@inference/protocol/crypto', /may use only/],
    ['packages/verifier/src/x.ts', '@inference/enclave', /may use only/],
    ['apps/coordinator/src/app.ts', 'inference-provider', /apps never/],
    ['apps/coordinator/src/fleet/registry.ts', '../inference/run.js', /may use only/],
    ['apps/coordinator/src/store/keys.ts', '../app.js', /may use only/],
    ['apps/provider/src/host/facts.ts', '@inference/formats', /may use only/],
    ['apps/provider/src/work/intake.ts', '../session/connection.js', /may use only/],
    ['apps/provider/src/work/intake.ts', '@inference/unheard-of', /no layer/],
  ])('%s may not import %s', (path, specifier, reason) => {
    expect(check(path, specifier)).toMatch(reason);
  });
});
