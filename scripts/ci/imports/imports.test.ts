import { describe, expect, it } from 'vitest';
import { findImports } from './read.js';
import { checkImport, type Layer, layerOf } from './rules.js';

function check(path: string, specifier: string, typesOnly = false): string | null {
  return checkImport(layerOf(path) as Layer, path, { specifier, typesOnly });
}

describe('import directions', () => {
  it('finds static, type-only, re-exported and dynamic imports', () => {
    const text = `import a from './a.js';\nimport type { B } from './b.js';\nexport * from './c.js';\nexport { d } from './d.js';\nconst e = await import('./e.js');\n`;
    expect(findImports('x.ts', text)).toEqual([
      { specifier: './a.js', typesOnly: false },
      { specifier: './b.js', typesOnly: true },
      { specifier: './c.js', typesOnly: false },
      { specifier: './d.js', typesOnly: false },
      { specifier: './e.js', typesOnly: false },
    ]);
  });

  it('tells imports of types from those that leave something to run', () => {
    const text = `import { type A, type B } from './types.js';\nimport { type C, d } from './mixed.js';\nimport './effect.js';\nimport type { E } from './twice.js';\nimport { f } from './twice.js';\nexport type { G } from './exported.js';\n`;
    const types = findImports('x.ts', text).filter(({ typesOnly }) => typesOnly);
    expect(types.map(({ specifier }) => specifier)).toEqual(['./types.js', './exported.js']);
  });

  it('lets the console import only types of the formats', () => {
    expect(check('apps/console/src/api/session.tsx', '@inference/formats', true)).toBeNull();
    expect(check('apps/console/src/api/session.tsx', '@inference/formats')).toMatch(/only types/);
    expect(check('apps/console/src/api/session.tsx', '@inference/coordinator', true)).toMatch(/apps never/);
    expect(check('apps/coordinator/src/app.ts', '@inference/console', true)).toMatch(/apps never/);
  });

  it("covers no file without a row of its own, a folder's or the package's", () => {
    for (const path of [
      'apps/coordinator/src/new.ts',
      'apps/coordinator/src/new/x.ts',
      'apps/provider/src/new.ts',
      'apps/console/src/new.ts',
    ]) {
      expect(layerOf(path), path).toBeNull();
    }
    expect(check('apps/coordinator/src/app.ts', './new/x.js')).toMatch(/no layer/);
  });

  it.each([
    ['packages/protocol/src/wire/frame.ts', '../bytes.js'],
    ['packages/protocol/src/crypto/hpke.ts', 'node:crypto'],
    ['packages/protocol/src/crypto/hpke.ts', '../ids.js'],
    ['packages/formats/src/x.ts', '@inference/protocol'],
    ['packages/json-schema-grammar/src/schema/literals.ts', '../validation/time-limit.js'],
    ['apps/provider/src/engine/messages.ts', '@inference/json-schema-grammar/grammar'],
    ['apps/coordinator/src/app.ts', './providers/registry.js'],
    ['apps/coordinator/src/inference/run.ts', '../providers/registry.js'],
    ['apps/coordinator/src/routes/inference/models.ts', 'fastify'],
    ['apps/console/src/pages/pages.ts', './client/keys-page.js'],
    ['apps/console/src/pages/client/keys-page.tsx', '../../ui/forms/button.js'],
  ])('%s may import %s', (path, specifier) => {
    expect(check(path, specifier)).toBeNull();
  });

  it.each([
    ['packages/protocol/src/bytes.ts', 'node:crypto', /no module of Node/],
    ['packages/protocol/src/bytes.ts', 'fs', /no module of Node/],
    ['packages/protocol/src/bytes.ts', './crypto/hpke.js', /may use only/],
    ['packages/formats/src/x.ts', '@inference/protocol/crypto', /may use only/],
    ['packages/verifier/src/x.ts', '@inference/enclave', /may use only/],
    ['packages/json-schema-grammar/src/schema/literals.ts', 'node:vm', /no module of Node/],
    ['apps/coordinator/src/app.ts', 'inference-provider', /apps never/],
    ['apps/coordinator/src/wiring/http.ts', '../../../provider/src/daemon/daemon.js', /apps never/],
    ['apps/provider/src/main.ts', './daemon/daemon.js', /may use only/],
    ['apps/coordinator/src/providers/registry.ts', '../inference/run.js', /may use only/],
    ['apps/coordinator/src/database/keys.ts', '../app.js', /may use only/],
    ['apps/provider/src/host/facts.ts', '@inference/formats', /may use only/],
    ['apps/provider/src/jobs/job.ts', '../session/connection.js', /may use only/],
    ['apps/provider/src/jobs/job.ts', '@inference/unheard-of', /no layer/],
    ['apps/console/src/ui/chart/chart-drawing.tsx', '../../app/router.js', /may use only/],
    ['apps/console/src/ui/feedback/error-state.tsx', '../../api/api-error.js', /may use only/],
    ['apps/console/src/pages/account/sign-in-page.tsx', '../../app/router.js', /may use only/],
    ['apps/console/src/pages/account/sign-in-page.tsx', '../client/keys-page.js', /may use only/],
  ])('%s may not import %s', (path, specifier, reason) => {
    expect(check(path, specifier)).toMatch(reason);
  });
});
