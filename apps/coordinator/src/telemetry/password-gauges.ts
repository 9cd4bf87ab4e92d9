/** Reads password hashing at the moment somebody asks for the metrics. */
import type { Metrics } from './metrics.js';

export function readPasswords(metrics: Metrics, hasher: { readonly running: number }, queue: { readonly waiting: number }): void {
  metrics.reading('password_hashes', 'Password hashes that run, and requests that wait for one.', ['state'], () => [
    [{ state: 'running' }, hasher.running],
    [{ state: 'waiting' }, queue.waiting],
  ]);
}
