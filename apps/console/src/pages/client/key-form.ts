/** Fields of the form for API keys, and conversions from a key and to a request body. */
import type { BudgetPeriod, ConsoleKey, CreateKey, SignatureForm } from '@inference/formats';
import { formatUsdInput, parseUsd } from '../../features/account/usd-amount.js';

export interface KeyForm {
  readonly name: string;
  /** US dollars; empty: no limit. */
  readonly spendLimit: string;
  /** US dollars per period; empty: no budget. */
  readonly budget: string;
  readonly budgetPeriod: BudgetPeriod;
  /** Last day of validity, in the browser's time zone; empty: no expiry. */
  readonly expiresOn: string;
  /** Empty: all models. */
  readonly models: readonly string[];
  /** Form of the signature in chat streams. Absent: an event. */
  readonly signatureForm?: SignatureForm;
}

type KeyFormResult =
  | { readonly kind: 'body'; readonly body: CreateKey }
  | { readonly kind: 'refused'; readonly field: keyof KeyForm; readonly problem: string };

const MAX_NAME = 100;

export const EMPTY_KEY_FORM: KeyForm = { name: '', spendLimit: '', budget: '', budgetPeriod: 'month', expiresOn: '', models: [] };

/**
 * Request body to create a key, or to change `existing`. The form contains only the day of the expiry, so the body omits an unchanged day:
 * the key keeps its exact time of expiry, even one in the past.
 */
export function keyBody(form: KeyForm, now: number, existing: ConsoleKey | null = null): KeyFormResult {
  const name = form.name.trim();
  if (name === '') return refused('name', 'Enter a name, such as the program that will use the key.');
  if (name.length > MAX_NAME) return refused('name', `A name has at most ${MAX_NAME} characters.`);
  const amounts: Record<'spendLimit' | 'budget', number | null> = { spendLimit: null, budget: null };
  for (const field of ['spendLimit', 'budget'] as const) {
    if (form[field].trim() === '') continue;
    const amount = parseUsd(form[field], 6);
    if (amount.kind === 'refused') return refused(field, amount.problem);
    amounts[field] = amount.microUsd;
  }
  const isExpiryKept = existing !== null && form.expiresOn === keyForm(existing).expiresOn;
  let expiresAt: string | null = null;
  if (form.expiresOn !== '' && !isExpiryKept) {
    const end = endOfDay(form.expiresOn);
    if (end === null) return refused('expiresOn', 'Choose a date.');
    if (end <= now) return refused('expiresOn', 'Choose today or a later date.');
    expiresAt = new Date(end).toISOString();
  }
  const models = form.models.length === 0 ? null : [...form.models];
  const limits = {
    spend_limit_micro_usd: amounts.spendLimit,
    budget_micro_usd: amounts.budget,
    budget_period: form.budgetPeriod,
    ...(isExpiryKept ? {} : { expires_at: expiresAt }),
    models,
  };
  return { kind: 'body', body: { name, ...limits, ...(form.signatureForm === undefined ? {} : { signature_form: form.signatureForm }) } };
}

export function keyForm(key: ConsoleKey): KeyForm {
  return {
    name: key.name,
    spendLimit: key.spend_limit_micro_usd === null ? '' : formatUsdInput(key.spend_limit_micro_usd),
    budget: key.budget_micro_usd === null ? '' : formatUsdInput(key.budget_micro_usd),
    budgetPeriod: key.budget_period ?? 'month',
    expiresOn: key.expires_at === null ? '' : localDay(new Date(key.expires_at)),
    models: key.models ?? [],
    ...(key.signature_form === null ? {} : { signatureForm: key.signature_form }),
  };
}

/** Returns the last second of a day in the browser's time zone, in milliseconds. Null for an invalid day. */
function endOfDay(text: string): number | null {
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text) ?? [];
  if (year === undefined) return null;
  const end = new Date(Number(year), Number(month) - 1, Number(day), 23, 59, 59);
  return localDay(end) === text ? end.getTime() : null;
}

function localDay(date: Date): string {
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

function refused(field: keyof KeyForm, problem: string): KeyFormResult {
  return { kind: 'refused', field, problem };
}
