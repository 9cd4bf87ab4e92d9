/** API key of the playground: valid for one hour, only in memory. */
import type { ConsolePlaygroundKey } from '@inference/formats';
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api } from '../../../api/api-client.js';
import type { KeySource } from './send-with-key.js';

const KEY = ['playground-key'] as const;
/** Shorter than the lifetime of one hour. */
const FRESH_MS = 55 * 60_000;

export function usePlaygroundKey(): KeySource {
  const queryClient = useQueryClient();
  return useMemo(() => playgroundKey(queryClient), [queryClient]);
}

function playgroundKey(queryClient: QueryClient): KeySource {
  return {
    async secret() {
      const { secret } = await queryClient.fetchQuery({
        queryKey: KEY,
        queryFn: () => api.post<ConsolePlaygroundKey>('/console/v1/playground-key'),
        staleTime: FRESH_MS,
        gcTime: FRESH_MS,
      });
      return secret;
    },
    forget: () => queryClient.removeQueries({ queryKey: KEY }),
  };
}
