import type { ConsoleKey, CreateKey } from '@inference/formats';
import { describe, expect, it } from 'vitest';
import { firstSteps, nextStep } from '../../src/features/account/first-steps.js';
import { endToEndSnippets, proxyCommand } from '../../src/pages/client/end-to-end-snippets.js';
import { featureSnippets, programSnippets } from '../../src/pages/client/feature-snippets.js';
import { EMPTY_KEY_FORM, keyBody, keyForm } from '../../src/pages/client/key-form.js';
import { imageSnippet, textSnippets } from '../../src/pages/client/snippets.js';

const NOW = Date.UTC(2026, 0, 15, 12);

/** The key that a request created. */
const keyOf = (body: CreateKey): ConsoleKey => ({
  id: '1',
  prefix: 'service-abcd',
  state: 'active' as const,
  created_at: '2026-01-01T00:00:00Z',
  last_used_at: null,
  revoked_at: null,
  created_by: null,
  spent_micro_usd: 0,
  name: body.name,
  expires_at: body.expires_at ?? null,
  spend_limit_micro_usd: body.spend_limit_micro_usd ?? null,
  budget_micro_usd: body.budget_micro_usd ?? null,
  budget_period: body.budget_period ?? null,
  budget_spent_micro_usd: 0,
  budget_resets_at: '2026-01-19T00:00:00Z',
  models: body.models ?? null,
  signature_form: body.signature_form ?? null,
});

describe('the form of a key', () => {
  it('creates a key without limits from a name alone', () => {
    expect(keyBody({ ...EMPTY_KEY_FORM, name: ' laptop ' }, NOW)).toEqual({
      kind: 'body',
      body: { name: 'laptop', spend_limit_micro_usd: null, budget_micro_usd: null, budget_period: 'month', expires_at: null, models: null },
    });
  });

  it('converts to a request body and back', () => {
    const budget = { budget: '10', budgetPeriod: 'week' } as const;
    const form = { name: 'ci', spendLimit: '2.50', ...budget, expiresOn: '2026-02-28', models: ['a/b'], signatureForm: 'comment' as const };
    const made = keyBody(form, NOW);
    if (made.kind !== 'body') throw new Error(made.problem);
    expect(made.body).toMatchObject({ spend_limit_micro_usd: 2_500_000, budget_micro_usd: 10_000_000, budget_period: 'week' });
    expect(new Date(made.body.expires_at ?? '').getDate()).toBe(28);
    expect(keyForm(keyOf(made.body))).toEqual(form);
  });

  it.each([
    ['an exact expiry', new Date(NOW + 3_600_000).toISOString()],
    ['an expiry in the past', new Date(NOW - 5 * 86_400_000).toISOString()],
    ['no expiry', null],
  ])('leaves %s as it is when only the name changes', (_, expires_at) => {
    const key = keyOf({ name: 'ci', expires_at });
    const changed = keyBody({ ...keyForm(key), name: 'build' }, NOW, key);
    expect(changed).toMatchObject({ kind: 'body', body: { name: 'build' } });
    expect(changed.kind === 'body' && changed.body).not.toHaveProperty('expires_at');
  });

  it('changes or removes the expiry of a key', () => {
    const key = keyOf({ name: 'ci', expires_at: new Date(NOW + 3_600_000).toISOString() });
    const changed = keyBody({ ...keyForm(key), expiresOn: '2026-02-28' }, NOW, key);
    expect(new Date((changed.kind === 'body' && changed.body.expires_at) || '').getDate()).toBe(28);
    expect(keyBody({ ...keyForm(key), expiresOn: '' }, NOW, key)).toMatchObject({ kind: 'body', body: { expires_at: null } });
    expect(keyBody({ ...keyForm(key), expiresOn: '2026-01-14' }, NOW, key)).toMatchObject({ kind: 'refused', field: 'expiresOn' });
  });

  it.each([
    [{ name: ' ' }, 'name'],
    [{ name: 'x'.repeat(101) }, 'name'],
    [{ name: 'a', spendLimit: 'lots' }, 'spendLimit'],
    [{ name: 'a', budget: '-1' }, 'budget'],
    [{ name: 'a', expiresOn: '2026-01-14' }, 'expiresOn'],
    [{ name: 'a', expiresOn: '2026-02-31' }, 'expiresOn'],
  ])('refuses %j at its field', (changes, field) => {
    expect(keyBody({ ...EMPTY_KEY_FORM, ...changes }, NOW)).toMatchObject({ kind: 'refused', field });
  });
});

describe('first requests', () => {
  const facts = { base: 'https://gateway.example', key: 'KEY', model: 'org/model-1' };

  it('contain base URL, key and model, and valid JSON', () => {
    const snippets = [...textSnippets(facts), imageSnippet(facts), ...featureSnippets(facts), ...programSnippets(facts)];
    expect(new Set(snippets.map(({ id }) => id)).size).toBe(snippets.length);
    for (const { id, code, run = '' } of snippets) {
      expect(code, id).toContain('https://gateway.example');
      expect(code + run, id).toMatch(/[\s"'=]KEY\b/);
      expect(code, id).toContain('org/model-1');
      const [, body] = /-d '(.*)'/s.exec(code) ?? [];
      if (body !== undefined) expect((JSON.parse(body) as { model: string }).model, id).toBe('org/model-1');
    }
    expect(snippets.filter(({ code }) => code.includes('/v1')).length).toBeGreaterThan(3);
    // Clients of the Messages format append /v1 themselves.
    for (const id of ['anthropic-js', 'anthropic-python']) expect(snippets.find((one) => one.id === id)?.code).not.toContain('/v1');
  });

  it('in end-to-end mode name the coordinator only to the verified fetch and the proxy', () => {
    const [verifiedFetch, ...throughProxy] = endToEndSnippets(facts);
    expect(verifiedFetch.code).toContain("const baseURL = 'https://gateway.example/v1'");
    expect(proxyCommand(facts.base)).toContain('inference-verify proxy --base-url https://gateway.example --listen 127.0.0.1:8086');
    expect(throughProxy.map(({ id }) => id)).toEqual(['proxy-curl', 'proxy-claude-code']);
    for (const { id, code } of throughProxy) {
      // A request straight to the coordinator would not be end-to-end encrypted.
      expect(code, id).not.toContain('gateway.example');
      expect(code, id).toContain('http://127.0.0.1:8086');
      expect(code, id).toContain('KEY');
      expect(code, id).toContain('org/model-1');
    }
  });
});

describe('first steps', () => {
  it('lead to a deposit, a verified response and a key', () => {
    const facts = { balanceMicroUsd: 0, deposited: false, keys: 0, used: false, depositMethods: ['stripe' as const] };
    const next = (changes: Partial<typeof facts>): string | undefined => nextStep(firstSteps({ ...facts, ...changes }))?.id;
    expect(next({})).toBe('deposit');
    expect(next({ balanceMicroUsd: 1 })).toBe('answer');
    expect(next({ deposited: true, used: true })).toBe('key');
    expect(next({ deposited: true, used: true, keys: 1 })).toBeUndefined();
    expect(next({ keys: 1 })).toBe('deposit');
  });

  it('ask for a payment only where the coordinator takes one', () => {
    const deposit = (depositMethods: ('stripe' | 'development')[]) =>
      firstSteps({ balanceMicroUsd: 0, deposited: false, keys: 0, used: false, depositMethods })[0];
    expect(deposit(['stripe'])).toMatchObject({ action: 'Add credits', text: expect.stringMatching(/^Add credits\./) });
    expect(deposit(['development'])).toMatchObject({ action: 'Add test funds' });
    expect(deposit([])).toMatchObject({ action: 'View balance', text: expect.stringMatching(/^Ask the operator/) });
    expect(Object.values(deposit([]) ?? {}).join(' ')).not.toMatch(/add (?:money|funds)|pay on/i);
  });
});
