/** The one request that may run on a page. It ends when the page is left, and so does what is asked about it afterwards. */
import { useEffect, useMemo, useRef } from 'react';

interface OneRequest {
  /** Runs a request that listens to the signal. */
  run<Outcome>(request: (signal: AbortSignal) => Promise<Outcome>): Promise<Outcome>;
  /** Ends the request that runs, if one does. */
  stop(): void;
  /** Aborted when the page is left; null before it is shown. */
  readonly left: AbortSignal | null;
}

export function useOneRequest(): OneRequest {
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
