import type { AdminProvider } from '@inference/formats';
import { expect, it } from 'vitest';
import { parseHashes } from '../../src/pages/admin/models/file-hashes.js';
import { filterProviders, type StateFilter } from '../../src/pages/admin/providers/provider-filter.js';
import { actionText, outcomeText } from '../../src/pages/admin/system/action-texts.js';

const provider = (serial_number: string, changes: Partial<AdminProvider> = {}): AdminProvider =>
  ({
    provider_id: serial_number.toLowerCase(),
    serial_number,
    status: 'online',
    hold: null,
    models: ['some/model'],
    agent: { name: 'agent', version: '1.2' },
    reputation: { state: 'well', reason: null, detail: null, since: null, until: null, recent_failures: 0 },
    ...changes,
  }) as AdminProvider;

it('machines are filtered by text and by state', () => {
  const hold = { reason: 'hot', since: '2026-01-01T00:00:00Z', by: 'key:1' };
  const failing = { state: 'well', reason: null, detail: null, since: null, until: null, recent_failures: 2 } as const;
  const all = [
    provider('WELL'),
    provider('HELD', { hold, status: 'quarantined' }),
    provider('FAILS', { reputation: failing, models: ['Other/Model'] }),
  ];
  const found = (text: string, state: StateFilter = 'all') =>
    filterProviders(all, { text, state }).map(({ serial_number }) => serial_number);
  expect(found('')).toEqual(['WELL', 'HELD', 'FAILS']);
  expect(found(' hel ')).toEqual(['HELD']);
  expect(found('other/model')).toEqual(['FAILS']);
  expect(found('', 'serving')).toEqual(['WELL', 'FAILS']);
  expect(found('', 'not_serving')).toEqual(['HELD']);
  expect(found('', 'held')).toEqual(['HELD']);
  expect(found('', 'troubled')).toEqual(['FAILS']);
  expect(found('well', 'held')).toEqual([]);
});

it('audit log entries are sentences, and unknown actions are shown as they are', () => {
  expect(actionText({ action: 'POST /admin/v1/providers/:id/quarantine', details: { reason: 'hot' } })).toBe('Quarantined machine: “hot”');
  expect(actionText({ action: 'PATCH /admin/v1/accounts/:id', details: { suspended: true, is_admin: false } })).toBe(
    'Suspended account, Revoked operator access',
  );
  expect(actionText({ action: 'POST /admin/v1/accounts/:id/deposits', details: { amount_micro_usd: 1_500_000, reference: 'inv-1' } })).toBe(
    'Added deposit of $1.50, reference “inv-1”',
  );
  expect(actionText({ action: 'POST /admin/v1/something/new', details: null })).toBe('POST /admin/v1/something/new');
  expect([outcomeText('done'), outcomeText('not_found'), outcomeText(null)]).toEqual(['done', 'failed: not found', 'not known']);
});

it('hashes are read one per line, in shasum format too, without duplicates', () => {
  const [one, two] = ['a'.repeat(64), 'b'.repeat(64)];
  expect(parseHashes(`${one}\r\n\n  ${two.toUpperCase()}  model.gguf\n${one}`)).toEqual({ kind: 'hashes', hashes: [one, two] });
  expect(parseHashes('')).toEqual({ kind: 'hashes', hashes: [] });
  expect(parseHashes(`${one}\nnonsense`)).toEqual({ kind: 'refused', problem: expect.stringContaining('Line 2') });
  expect(parseHashes(one.slice(1))).toMatchObject({ kind: 'refused' });
});
