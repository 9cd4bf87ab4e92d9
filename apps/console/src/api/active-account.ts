/**
 * Active account: the organisation or personal account on whose behalf this tab sends requests.
 *
 * Stored per tab, so that tabs can act for different accounts. The coordinator checks the membership on every request.
 */
import { useSyncExternalStore } from 'react';

/** Request header that names the organisation. */
export const ACCOUNT_HEADER = 'x-account-id';

const STORAGE_KEY = 'account';
/** Query parameter that names the organisation, in mailed links and in downloads. */
const ADDRESS_PARAMETER = 'account_id';

interface ActiveAccount {
  /** Id of the organisation; null: the personal account. */
  readonly id: string | null;
  /** The person lost access to the active organisation, so the personal account became active. */
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

/** Adds the active account to the address of a download, because a link cannot send a header. */
export function accountUrl(url: string): string {
  if (active.id === null) return url;
  return `${url}${url.includes('?') ? '&' : '?'}${ADDRESS_PARAMETER}=${encodeURIComponent(active.id)}`;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Methods of `sessionStorage`. A type of its own, because tests run in Node.js without types of browsers. */
interface TabStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Null: the browser forbids storage, and the choice lasts until the page is left. */
function tabStorage(): TabStorage | null {
  try {
    return (globalThis as { readonly sessionStorage?: TabStorage }).sessionStorage ?? null;
  } catch {
    return null;
  }
}

/** Browser objects that tests in Node.js do not have. */
interface AddressBar {
  readonly location?: { readonly href: string };
  readonly history?: { readonly state: unknown; replaceState(state: unknown, unused: string, url: string): void };
}

/**
 * Account that a mailed link selects; null: the address names none.
 *
 * Removes the parameter from the address, so that a reload does not undo a later choice.
 */
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
