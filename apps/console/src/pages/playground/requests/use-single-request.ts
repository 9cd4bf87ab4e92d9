/** Runs at most one request per page. Leaving the page aborts the request and its follow-up work. */
import { useEffect, useMemo, useRef } from 'react';

interface SingleRequest {
  /** Runs `request` with an abort signal. */
  run<Outcome>(request: (signal: AbortSignal) => Promise<Outcome>): Promise<Outcome>;
  /** Aborts the running request, if any. */
  stop(): void;
  /** Aborted when the page is left; null before it is mounted. */
  readonly left: AbortSignal | null;
}

export function useSingleRequest(): SingleRequest {
  const running = useRef<AbortController | null>(null);
  const left = useRef<AbortController | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    left.current = leaving;
    return () => {
      leaving.abort();
      running.current?.abort();
    };
  }, []);

  return useMemo(
    () => ({
      async run(request) {
        const stop = new AbortController();
        running.current = stop;
        try {
          return await request(stop.signal);
        } finally {
          if (running.current === stop) running.current = null;
        }
      },
      stop: () => running.current?.abort(),
      get left() {
        return left.current?.signal ?? null;
      },
    }),
    [],
  );
}
