/** Who is signed in, and what this coordinator offers. Pages ask here instead of fetching it themselves. */
import type { ConsoleMe, ConsoleSessionState, ConsoleSettings } from '@inference/formats';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { createContext, type ReactNode, useContext, useMemo } from 'react';
import { api } from './api-client.js';
import { SESSION_KEY } from './query.js';

export type Session =
  | { readonly state: 'loading' }
  /** It could not be found out. */
  | { readonly state: 'failed'; readonly error: Error; readonly retry: () => void }
  /** `suspended`: somebody has signed in whose account an operator has suspended. */
  | { readonly state: 'signed-out'; readonly settings: ConsoleSettings; readonly suspended: boolean }
  | { readonly state: 'signed-in'; readonly settings: ConsoleSettings; readonly me: ConsoleMe };

const SETTINGS_KEY = ['settings'] as const;
const LOADING: Session = { state: 'loading' };
const SessionContext = createContext<Session>(LOADING);

export function SessionProvider({ children }: { readonly children: ReactNode }) {
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
  return <SessionContext value={session}>{children}</SessionContext>;
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

/** To be called after signing in or out: asks who is signed in now, and forgets what was fetched for somebody else. */
export function useSessionChanged(): () => Promise<void> {
  const queryClient = useQueryClient();
  return async () => {
    queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SETTINGS_KEY[0] && queryKey[0] !== SESSION_KEY[0] });
    await queryClient.refetchQueries({ queryKey: SESSION_KEY });
  };
}
