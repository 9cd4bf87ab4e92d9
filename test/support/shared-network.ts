/**
 * One network for the test files of a process that only ask things of it: starting it anew for each file would cost more than
 * most of their tests. The first file that needs it starts it; it ends with the process. Files that stop, kill or configure a
 * network start their own.
 */
import { rmSync } from 'node:fs';
import { type DemoNetwork, startDemoNetwork } from './demo-network.js';

let started: Promise<DemoNetwork> | undefined;
const mishaps: string[] = [];

/** A running network with one provider. Not to be stopped, and nothing of it to be ended. */
export function sharedNetwork(): Promise<DemoNetwork> {
  started ??= start();
  return started;
}

/** What went wrong with it so far: programs that ended and were started again. Every file that uses it expects none. */
export function mishapsOfSharedNetwork(): readonly string[] {
  return mishaps;
}

async function start(): Promise<DemoNetwork> {
  const note = (text: string): void => void mishaps.push(text);
  const { network } = await startDemoNetwork({ onNotice: note, onFailure: note });
  // The runner ends its processes by a signal, and half a second later by force.
  process.once('SIGTERM', () => {
    for (const { current } of [...network.providers, network.coordinator]) current.kill('SIGKILL');
    rmSync(network.dataDir, { recursive: true, force: true, maxRetries: 5 });
    process.kill(process.pid, 'SIGTERM');
  });
  return network;
}
