/** `useRequests`: runs requests of a component with abort signals. Unmounting the component aborts them. */
import { useEffect, useMemo, useRef } from 'react';

interface Requests {
  /** Calls `request` with a signal that `stop` and unmounting abort. */
  run<Outcome>(request: (signal: AbortSignal) => Promise<Outcome>): Promise<Outcome>;
  stop(): void;
  /** Aborted on unmounting; null before the component is mounted. For work after a request, which `stop` must not abort. */
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
