/**
 * `/console/v1/keys`: API keys of the account that the session acts for. `/console/v1/playground-key`: short-lived keys of the console's
 * playground.
 */
import {
  type ConsoleKey,
  ConsoleKeyPageSchema,
  ConsoleKeySchema,
  ConsoleNewKeySchema,
  ConsolePlaygroundKeySchema,
  CreateKeySchema,
  RequestError,
  type UpdateKey,
  UpdateKeySchema,
} from '@inference/formats';
import Type from 'typebox';
import { microUsd } from '../../billing/micro-usd.js';
import type { OwnedKey, OwnedKeyRepository } from '../../database/accounts/owned-key-repository.js';
import type { PlaygroundKeyRepository } from '../../database/accounts/playground-key-repository.js';
import type { KeyBudget } from '../../database/ledger/key-budget.js';
import { readPageQuery, toPage } from '../parameters/pagination.js';
import { isoTime, isoTimeOrNull } from '../parameters/times.js';
import type { ConsoleApi } from '../plugins/console-api.js';

export function addKeyRoutes(api: ConsoleApi, keyRepository: OwnedKeyRepository, now: () => number): void {
  const bodyOf = (key: OwnedKey): ConsoleKey => keyBody(key, now());

  api.add({ method: 'GET', path: '/keys', response: ConsoleKeyPageSchema }, async ({ caller, query }) => {
    const { limit, after } = readPageQuery(query);
    const keys = await keyRepository.list(caller.account.id, limit + 1, after);
    return toPage(keys, limit, (key) => ({ at: key.createdAt, id: key.id }), bodyOf);
  });

  api.add(
    { method: 'POST', path: '/keys', body: CreateKeySchema, response: ConsoleNewKeySchema, status: 201, subject: ({ key }) => key.name },
    async ({ caller, userId, body }) => {
      const limits = {
        expiresAt: expiryOf(body.expires_at, now()) ?? null,
        spendLimit: body.spend_limit_micro_usd ?? null,
        budget: budgetFrom(body) ?? null,
        models: body.models ?? null,
        signatureForm: body.signature_form ?? null,
      };
      const created = await keyRepository.create(caller.account.id, body.name, limits, userId);
      if (created === null) throw new RequestError('conflict', null, 'This account has too many keys. Revoke some first.');
      return { key: bodyOf(created.key), secret: created.text };
    },
  );

  const subject = ({ name }: ConsoleKey): string => name;
  const update = { method: 'PATCH', path: '/keys/:id', body: UpdateKeySchema, response: ConsoleKeySchema, subject } as const;
  api.add(update, async ({ caller, body, params }) => {
    const expiresAt = expiryOf(body.expires_at, now());
    const budget = budgetFrom(body);
    const changed = await keyRepository.change(caller.account.id, params.id ?? '', {
      ...(body.name === undefined ? {} : { name: body.name }),
      ...(expiresAt === undefined ? {} : { expiresAt }),
      ...(body.spend_limit_micro_usd === undefined ? {} : { spendLimit: body.spend_limit_micro_usd }),
      ...(budget === undefined ? {} : { budget }),
      ...(body.models === undefined ? {} : { models: body.models }),
      ...(body.signature_form === undefined ? {} : { signatureForm: body.signature_form }),
    });
    return bodyOf(requireFound(changed));
  });

  api.add({ method: 'DELETE', path: '/keys/:id', response: ConsoleKeySchema, subject }, async ({ caller, params }) => {
    return bodyOf(requireFound(await keyRepository.revoke(caller.account.id, params.id ?? '')));
  });
}

function keyBody(key: OwnedKey, now: number): ConsoleKey {
  const expired = key.expiresAt !== null && key.expiresAt <= now;
  return {
    id: key.id,
    name: key.name,
    prefix: key.prefix,
    state: key.revokedAt !== null ? 'revoked' : expired ? 'expired' : 'active',
    created_at: isoTime(key.createdAt),
    last_used_at: isoTimeOrNull(key.lastUsedAt),
    expires_at: isoTimeOrNull(key.expiresAt),
    revoked_at: isoTimeOrNull(key.revokedAt),
    spend_limit_micro_usd: key.spendLimit,
    spent_micro_usd: key.spent,
    budget_micro_usd: key.budget?.amount ?? null,
    budget_period: key.budget?.period ?? null,
    budget_spent_micro_usd: key.budgetUse?.spent ?? null,
    budget_resets_at: isoTimeOrNull(key.budgetUse?.resetsAt ?? null),
    models: key.models === null ? null : [...key.models],
    signature_form: key.signatureForm,
    created_by: key.createdBy === null ? null : { user_id: key.createdBy.id, name: key.createdBy.name },
  };
}

/** Parses an expiry time, in milliseconds. Null means never, undefined unchanged. Throws RequestError for a past or invalid time. */
function expiryOf(text: string | null | undefined, now: number): number | null | undefined {
  if (text === null || text === undefined) return text;
  const time = Date.parse(text);
  if (Number.isFinite(time) && time > now) return time;
  throw new RequestError('invalid_request', 'expires_at', 'expires_at must be a time in the future.');
}

/** Budget that a request body sets. Null means none, undefined unchanged. Throws RequestError for a period without an amount. */
function budgetFrom({ budget_micro_usd: amount, budget_period: period }: UpdateKey): KeyBudget | null | undefined {
  if (amount === undefined) {
    if (period === undefined) return undefined;
    throw new RequestError('invalid_request', 'budget_micro_usd', 'budget_period must be sent together with budget_micro_usd.');
  }
  return amount === null ? null : { amount: microUsd(amount), period: period ?? 'month' };
}

function requireFound(key: OwnedKey | null): OwnedKey {
  if (key !== null) return key;
  throw new RequestError('not_found', null, 'This account has no such key, or it is revoked.');
}

export function addPlaygroundKey(api: ConsoleApi, keys: PlaygroundKeyRepository): void {
  api.add({ method: 'POST', path: '/playground-key', response: ConsolePlaygroundKeySchema, status: 201 }, async ({ caller, userId }) => {
    const { id, text, expiresAt, spendLimit } = await keys.create(caller.account.id, userId);
    return { id, secret: text, expires_at: isoTime(expiresAt), spend_limit_micro_usd: spendLimit };
  });

  // Revokes the person's playground keys of all accounts.
  api.add({ method: 'DELETE', path: '/playground-key', response: Type.Object({}) }, async ({ userId }) => {
    await keys.revokeAll(userId);
    return {};
  });
}
