/**
 * Account that this tab acts for: an organisation, or the personal account. Stored per tab, so that tabs can act for different
 * accounts. The coordinator checks the membership on every request.
 */
import { useSyncExternalStore } from 'react';

/** Header of requests for an organisation. */
export const ACCOUNT_HEADER = 'x-account-id';

const STORAGE_KEY = 'account';
/** Search parameter of mailed links and of downloads. */
const ADDRESS_PARAMETER = 'account_id';

interface ActiveAccount {
  /** Id of the organisation; null: the personal account. */
  readonly id: string | null;
  /** Whether the person lost access to the organisation that this tab acted for. */
  readonly hasLostAccess: boolean;
}

let active: ActiveAccount = { id: takeFromAddress() ?? read(), hasLostAccess: false };
const listeners = new Set<() => void>();

export function activeAccountId(): string | null {
  return active.id;
}

export function setActiveAccount(id: string | null, { hasLostAccess = false } = {}): void {
  if (id === active.id && hasLostAccess === active.hasLostAccess) return;
  active = { id, hasLostAccess };
  write(id);
  for (const listener of listeners) listener();
}

export function useActiveAccountState(): ActiveAccount {
  return useSyncExternalStore(subscribe, () => active);
}

/** Address of a download for the account of this tab. Links cannot send a header. */
export function accountUrl(url: string): string {
  if (active.id === null) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${ADDRESS_PARAMETER}=${encodeURIComponent(active.id)}`;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Methods of `sessionStorage`, whose type the tests of Node.js do not have. */
interface TabStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Null while storage is disabled: the choice then lasts until the page is left. */
function tabStorage(): TabStorage | null {
  try {
    return (globalThis as { readonly sessionStorage?: TabStorage }).sessionStorage ?? null;
  } catch {
    return null;
  }
}

/** Browser objects that the tests of Node.js do not have. */
interface AddressBar {
  readonly location?: { readonly href: string };
  readonly history?: { readonly state: unknown; replaceState(state: unknown, unused: string, url: string): void };
}

/** Account that a mailed link selects. Leaves the address, so that a reload keeps a later choice. Null: the address names none. */
export function takeFromAddress({ location, history }: AddressBar = globalThis as AddressBar): string | null {
  if (location === undefined || history === undefined) return null;
  const url = new URL(location.href);
  const id = url.searchParams.get(ADDRESS_PARAMETER);
  if (id === null || id === '') return null;
  url.searchParams.delete(ADDRESS_PARAMETER);
  history.replaceState(history.state, '', url.href);
  write(id);
  return id;
}

function read(): string | null {
  return tabStorage()?.getItem(STORAGE_KEY) ?? null;
}

function write(id: string | null): void {
  if (id === null) tabStorage()?.removeItem(STORAGE_KEY);
  else tabStorage()?.setItem(STORAGE_KEY, id);
}
