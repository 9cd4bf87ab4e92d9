/**
 * Active account of this tab: an organisation, or the personal account. By default, `api-client` sends an organisation's id with its
 * requests. The id is stored per tab, so different tabs can act for different accounts.
 */
import { useSyncExternalStore } from 'react';

/** Request header with the id of the active organisation. */
export const ACCOUNT_HEADER = 'x-account-id';

const STORAGE_KEY = 'account';
/** Query parameter with the id of the organisation, in links of e-mails and in downloads. */
const ADDRESS_PARAMETER = 'account_id';

interface ActiveAccount {
  /** Id of the organisation; null: the personal account. */
  readonly id: string | null;
  /** Whether the personal account became active because the person lost access to the organisation. */
  readonly hasLostAccess: boolean;
}

let active: ActiveAccount = { id: takeFromAddress() ?? read(), hasLostAccess: false };
const listeners = new Set<() => void>();

export function activeAccountId(): string | null {
  return active.id;
}

/** Switches the account of this tab. `id` null: the personal account. */
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

/** Methods of `sessionStorage`. Declared here, because tests run in Node.js without browser types. */
interface TabStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** Null: the browser forbids storage, so the active account lasts until a reload. */
function tabStorage(): TabStorage | null {
  try {
    return (globalThis as { readonly sessionStorage?: TabStorage }).sessionStorage ?? null;
  } catch {
    return null;
  }
}

/** Browser objects, absent in tests on Node.js. */
interface AddressBar {
  readonly location?: { readonly href: string };
  readonly history?: { readonly state: unknown; replaceState(state: unknown, unused: string, url: string): void };
}

/**
 * Takes the account id from the page address, where links in e-mails put it, and stores the id for this tab. Null: none in the address.
 *
 * Removes the parameter from the address; otherwise a reload would undo a later switch.
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
