/**
 * `SessionProvider` and hooks: the user's session and the coordinator's settings, shared by all pages. All tabs of a browser share
 * one session, so each sign-in or sign-out is broadcast to the other tabs.
 */
import type { ConsoleMe, ConsoleMembership, ConsoleSessionState, ConsoleSettings, Permission } from '@inference/formats';
import { type Query, type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';
import { activeAccountId, setActiveAccount, useActiveAccountState } from './active-account.js';
import { api, onSessionChange } from './api-client.js';

export type Session =
  | { readonly state: 'loading' }
  /** Session or settings could not be read, and no earlier result exists. */
  | { readonly state: 'failed'; readonly error: Error; readonly retry: () => void }
  /** `suspended`: the browser has a session, but its account is suspended. */
  | { readonly state: 'signed-out'; readonly settings: ConsoleSettings; readonly suspended: boolean }
  | { readonly state: 'signed-in'; readonly settings: ConsoleSettings; readonly me: ConsoleMe };

const SESSION_KEY = ['session'] as const;
const SETTINGS_KEY = ['settings'] as const;
const LOADING: Session = { state: 'loading' };
const SessionContext = createContext<Session>(LOADING);
/** Channel to the other tabs of this browser. */
const TabsContext = createContext<BroadcastChannel | null>(null);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const queryClient = useQueryClient();
  const [tabs] = useState(() => new BroadcastChannel('session'));
  useEffect(() => {
    const onTabMessage = async (): Promise<void> => {
      await queryClient.refetchQueries({ queryKey: SESSION_KEY });
      await queryClient.resetQueries({ predicate: isAccountQuery });
    };
    tabs.onmessage = () => void onTabMessage();
    // Without a session, pages redirect to sign-in.
    return onSessionChange(() => void queryClient.invalidateQueries({ queryKey: SESSION_KEY }));
  }, [queryClient, tabs]);
  const settings = useQuery({
    queryKey: SETTINGS_KEY,
    queryFn: ({ signal }) => api.get<ConsoleSettings>('/console/v1/settings', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const account = useQuery({
    queryKey: SESSION_KEY,
    queryFn: async ({ signal }) => {
      const state = await api.get<ConsoleSessionState>('/console/v1/session', { signal });
      leaveLostOrganisation(queryClient, state.account);
      return state;
    },
    staleTime: 60_000,
  });
  const { data: loadedSettings, error: settingsError, refetch: refetchSettings } = settings;
  const { data: sessionState, error: accountError, refetch: refetchAccount } = account;
  const session = useMemo((): Session => {
    if (loadedSettings !== undefined && sessionState !== undefined) {
      return sessionState.account === null
        ? { state: 'signed-out', settings: loadedSettings, suspended: sessionState.suspended }
        : { state: 'signed-in', settings: loadedSettings, me: sessionState.account };
    }
    const error = settingsError ?? accountError;
    const retry = (): void => {
      void refetchSettings();
      void refetchAccount();
    };
    return error === null ? LOADING : { state: 'failed', error, retry };
  }, [loadedSettings, sessionState, settingsError, accountError, refetchSettings, refetchAccount]);
  return (
    <TabsContext value={tabs}>
      <SessionContext value={session}>{children}</SessionContext>
    </TabsContext>
  );
}

export function useSession(): Session {
  return useContext(SessionContext);
}

/** Personal account of the session. Throws unless the user is signed in. */
export function useMe(): ConsoleMe {
  const session = useSession();
  if (session.state !== 'signed-in') throw new Error('useMe requires a signed-in session');
  return session.me;
}

/** Active account of this tab. Throws unless the user is signed in. */
export function useActiveAccount(): { readonly id: string; readonly name: string; readonly organisation: ConsoleMembership | null } {
  const me = useMe();
  const organisation = useOrganisationOf(me);
  return organisation === null
    ? { id: me.id, name: me.name, organisation }
    : { id: organisation.id, name: organisation.name, organisation };
}

/** Active organisation of this tab; null: the personal account. */
export function useOrganisationOf({ organisations }: ConsoleMe): ConsoleMembership | null {
  const { id } = useActiveAccountState();
  return organisations.find((organisation) => organisation.id === id) ?? null;
}

/** Whether the person's role permits the action in the active account. The personal account permits every action. */
export function usePermission(permission: Permission): boolean {
  const { organisation } = useActiveAccount();
  return organisation === null || organisation.permissions.includes(permission);
}

/** Switches this tab to another account and drops data of the previous account. Null: the personal account. */
export function useSwitchAccount(): (id: string | null) => void {
  const queryClient = useQueryClient();
  return (id) => {
    queryClient.removeQueries({ predicate: isAccountQuery });
    setActiveAccount(id);
  };
}

/** Leaves the active organisation after it was suspended, the membership ended, or the user signed out (`me` null). */
function leaveLostOrganisation(queryClient: QueryClient, me: ConsoleMe | null): void {
  const id = activeAccountId();
  if (id === null || me?.organisations.some((membership) => membership.id === id && !membership.suspended)) return;
  queryClient.removeQueries({ predicate: isAccountQuery });
  setActiveAccount(null, { hasLostAccess: me !== null });
}

/** Settings of the coordinator. Null while session or settings are unknown. */
export function useSettings(): ConsoleSettings | null {
  const session = useSession();
  return session.state === 'signed-in' || session.state === 'signed-out' ? session.settings : null;
}

/** Returns a function that refetches the session and drops data of accounts, in all tabs. Call the function after the session changed. */
export function useRefreshSession(): () => Promise<void> {
  const queryClient = useQueryClient();
  const tabs = useContext(TabsContext);
  return async () => {
    queryClient.removeQueries({ predicate: isAccountQuery });
    tabs?.postMessage('changed');
    await queryClient.refetchQueries({ queryKey: SESSION_KEY });
  };
}

/** Whether a query may contain data of an account. */
function isAccountQuery({ queryKey }: Query): boolean {
  return queryKey[0] !== SETTINGS_KEY[0] && queryKey[0] !== SESSION_KEY[0];
}
