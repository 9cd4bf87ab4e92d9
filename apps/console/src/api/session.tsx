/**
 * Who is signed in, and what this coordinator offers. Pages ask here instead of fetching it themselves. All tabs of a browser have
 * one session: the others are told when one of them signs in or out.
 */
import type { ConsoleMe, ConsoleSessionState, ConsoleSettings } from '@inference/formats';
import { type Query, useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';
import { api, onSignedOut } from './api-client.js';

export type Session =
  | { readonly state: 'loading' }
  /** It could not be found out. */
  | { readonly state: 'failed'; readonly error: Error; readonly retry: () => void }
  /** `suspended`: somebody has signed in whose account an operator has suspended. */
  | { readonly state: 'signed-out'; readonly settings: ConsoleSettings; readonly suspended: boolean }
  | { readonly state: 'signed-in'; readonly settings: ConsoleSettings; readonly me: ConsoleMe };

const SESSION_KEY = ['session'] as const;
const SETTINGS_KEY = ['settings'] as const;
const LOADING: Session = { state: 'loading' };
const SessionContext = createContext<Session>(LOADING);
/** The way to the other tabs of this browser. */
const TabsContext = createContext<BroadcastChannel | null>(null);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
  const queryClient = useQueryClient();
  const [tabs] = useState(() => new BroadcastChannel('session'));
  useEffect(() => {
    const hear = async (): Promise<void> => {
      await queryClient.refetchQueries({ queryKey: SESSION_KEY });
      await queryClient.resetQueries({ predicate: isOfSession });
    };
    tabs.onmessage = () => void hear();
    // Leads whoever needs a session to sign in.
    return onSignedOut(() => void queryClient.invalidateQueries({ queryKey: SESSION_KEY }));
  }, [queryClient, tabs]);
  const settings = useQuery({
    queryKey: SETTINGS_KEY,
    queryFn: ({ signal }) => api.get<ConsoleSettings>('/console/v1/settings', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const account = useQuery({
    queryKey: SESSION_KEY,
    queryFn: ({ signal }) => api.get<ConsoleSessionState>('/console/v1/session', { signal }),
    staleTime: 60_000,
  });
  const { data: offered, error: settingsError, refetch: refetchSettings } = settings;
  const { data: who, error: accountError, refetch: refetchAccount } = account;
  const session = useMemo((): Session => {
    if (offered !== undefined && who !== undefined) {
      return who.account === null
        ? { state: 'signed-out', settings: offered, suspended: who.suspended }
        : { state: 'signed-in', settings: offered, me: who.account };
    }
    const error = settingsError ?? accountError;
    const retry = (): void => {
      void refetchSettings();
      void refetchAccount();
    };
    return error === null ? LOADING : { state: 'failed', error, retry };
  }, [offered, who, settingsError, accountError, refetchSettings, refetchAccount]);
  return (
    <TabsContext value={tabs}>
      <SessionContext value={session}>{children}</SessionContext>
    </TabsContext>
  );
}

export function useSession(): Session {
  return useContext(SessionContext);
}

/** Who is signed in. Only for pages whose route asks for an account. */
export function useMe(): ConsoleMe {
  const session = useSession();
  if (session.state !== 'signed-in') throw new Error('this page is shown only to people who are signed in');
  return session.me;
}

/** What this coordinator offers. Only for pages that are shown once this is known. */
export function useSettings(): ConsoleSettings | null {
  const session = useSession();
  return session.state === 'signed-in' || session.state === 'signed-out' ? session.settings : null;
}

/** To be called after signing in or out: asks who is signed in now, and forgets what was fetched for somebody else, in all tabs. */
export function useSessionChanged(): () => Promise<void> {
  const queryClient = useQueryClient();
  const tabs = useContext(TabsContext);
  return async () => {
    queryClient.removeQueries({ predicate: isOfSession });
    tabs?.postMessage('changed');
    await queryClient.refetchQueries({ queryKey: SESSION_KEY });
  };
}

/** Whether something may have been fetched for whoever was signed in. */
function isOfSession({ queryKey }: Query): boolean {
  return queryKey[0] !== SETTINGS_KEY[0] && queryKey[0] !== SESSION_KEY[0];
}
