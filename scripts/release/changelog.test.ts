import { readFileSync } from 'node:fs';
import getReleasePlan from '@changesets/get-release-plan';
import { expect, it } from 'vitest';
import { sectionOf, withRelease } from './changelog.js';
import { ROOT } from './manifest.js';

const BEFORE = `# Changelog

Some words.

## Unreleased

- A highlight.

## 0.1.0

- First.
`;
const ENTRIES = [
  { summary: 'The agent\ndoes more.', packages: ['inference-provider', '@inference/console'] },
  { summary: 'The API does more.', packages: ['inference-provider', '@inference/coordinator'] },
  { summary: 'A library.', packages: ['@inference/protocol'] },
];

it('turns changesets into a section, each entry once', () => {
  const after = withRelease(BEFORE, '0.2.0', '2026-11-26', ENTRIES);
  expect(after).toBe(`# Changelog

Some words.

## Unreleased

## 0.2.0 (2026-11-26)

- A highlight.

### API and coordinator

- The API does more.

### Console

- The agent
  does more.

### Client and verifier

- A library.

## 0.1.0

- First.
`);
  expect(sectionOf(after, '0.1.0')).toBe('- First.');
  expect(sectionOf(after, '0.2.0')).toMatch(/^- A highlight\.\n[\s\S]*- A library\.$/);
  expect(() => sectionOf(after, '0.3.0')).toThrow('CHANGELOG.md has no section of 0.3.0');
  expect(() => withRelease('# Changelog\n', '1.0.0', '2026-11-26', ENTRIES)).toThrow('no section "## Unreleased"');
});

it('can release the changelog of the repository', () => {
  const changelog = readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8');
  expect(withRelease(changelog, '9.9.9', '2026-11-26', ENTRIES)).toContain('## 9.9.9 (2026-11-26)');
});

it('can plan a release from the changesets of the repository: each names packages of the workspace', async () => {
  await expect(getReleasePlan(ROOT)).resolves.toHaveProperty('changesets');
});
