/** `useRequests`: the running requests of a page. Leaving the page aborts them and their follow-up work. */
import { useEffect, useMemo, useRef } from 'react';

interface Requests {
  run<Outcome>(request: (signal: AbortSignal) => Promise<Outcome>): Promise<Outcome>;
  stop(): void;
  /** Aborted when the user leaves the page; null before the page is mounted. */
  readonly leaveSignal: AbortSignal | null;
}

export function useRequests(): Requests {
  const running = useRef(new Set<AbortController>());
  const left = useRef<AbortController | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    const requests = running.current;
    left.current = leaving;
    return () => {
      leaving.abort();
      for (const stop of requests) stop.abort();
    };
  }, []);

  return useMemo(
    () => ({
      async run(request) {
        const stop = new AbortController();
        running.current.add(stop);
        try {
          return await request(stop.signal);
        } finally {
          running.current.delete(stop);
        }
      },
      stop() {
        for (const stop of running.current) stop.abort();
      },
      get leaveSignal() {
        return left.current?.signal ?? null;
      },
    }),
    [],
  );
}
