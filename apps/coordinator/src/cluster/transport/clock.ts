/** `Clock`: monotonic time and timers for links and the NATS connection. Tests pass a virtual clock. */
export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Calls back after `ms` milliseconds. Returns a cancel function. */
  setTimer(ms: number, callback: () => void): () => void;
  /** Calls back at the end of the current turn of the event loop. */
  defer(callback: () => void): void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
  defer: (callback) => {
    setImmediate(callback);
  },
};
