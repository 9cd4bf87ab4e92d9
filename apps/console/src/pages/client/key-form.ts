/** Fields of the key form, and the request body made from them. */
import type { ConsoleKey, CreateKey, SignatureForm } from '@inference/formats';
import { formatUsdInput, parseUsd } from '../../features/account/usd-amount.js';

export interface KeyForm {
  readonly name: string;
  /** US dollars; empty: no limit. */
  readonly spendLimit: string;
  /** Last day of validity (local time); empty: no expiry. */
  readonly expiresOn: string;
  /** Empty: all models. */
  readonly models: readonly string[];
  /** Where chat streams carry their signatures; absent: as an event. */
  readonly signatureForm?: SignatureForm;
}

type KeyFormResult =
  | { readonly kind: 'body'; readonly body: CreateKey }
  | { readonly kind: 'refused'; readonly field: keyof KeyForm; readonly problem: string };

const MAX_NAME = 100;

export const EMPTY_KEY_FORM: KeyForm = { name: '', spendLimit: '', expiresOn: '', models: [] };

export function keyBody(form: KeyForm, now: number): KeyFormResult {
  const name = form.name.trim();
  if (name === '') return refused('name', 'Enter a name, such as the program that will use the key.');
  if (name.length > MAX_NAME) return refused('name', `A name has at most ${MAX_NAME} characters.`);
  let spendLimit: number | null = null;
  if (form.spendLimit.trim() !== '') {
    const amount = parseUsd(form.spendLimit, 6);
    if (amount.kind === 'refused') return refused('spendLimit', amount.problem);
    spendLimit = amount.microUsd;
  }
  let expiresAt: string | null = null;
  if (form.expiresOn !== '') {
    const end = endOfDay(form.expiresOn);
    if (end === null) return refused('expiresOn', 'Choose a date.');
    if (end <= now) return refused('expiresOn', 'Choose today or a later date.');
    expiresAt = new Date(end).toISOString();
  }
  const models = form.models.length === 0 ? null : [...form.models];
  const limits = { spend_limit_micro_usd: spendLimit, expires_at: expiresAt, models };
  return { kind: 'body', body: { name, ...limits, ...(form.signatureForm === undefined ? {} : { signature_form: form.signatureForm }) } };
}

export function keyForm(key: ConsoleKey): KeyForm {
  return {
    name: key.name,
    spendLimit: key.spend_limit_micro_usd === null ? '' : formatUsdInput(key.spend_limit_micro_usd),
    expiresOn: key.expires_at === null ? '' : localDay(new Date(key.expires_at)),
    models: key.models ?? [],
    ...(key.signature_form === null ? {} : { signatureForm: key.signature_form }),
  };
}

/** Last second of a local day, in milliseconds. */
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
