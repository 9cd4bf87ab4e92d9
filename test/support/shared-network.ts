/** One network for all test files of a process that neither stop nor configure a network. Started by the first user. */
import { rmSync } from 'node:fs';
import { type DemoNetwork, startDemoNetwork } from './demo-network.js';

let started: Promise<DemoNetwork> | undefined;
const failures: string[] = [];

/** A running network with one provider. Must not be stopped or damaged. */
export function sharedNetwork(): Promise<DemoNetwork> {
  started ??= start();
  return started;
}

/** Crashes of the network's programs; expected to be empty. */
export function failuresOfSharedNetwork(): readonly string[] {
  return failures;
}

async function start(): Promise<DemoNetwork> {
  const note = (text: string): void => void failures.push(text);
  const { network } = await startDemoNetwork({ onNotice: note, onFailure: note });
  // The runner ends its processes by a signal, and half a second later by force.
  process.once('SIGTERM', () => {
    for (const { current } of [...network.providers, network.coordinator]) current.kill('SIGKILL');
    rmSync(network.dataDir, { recursive: true, force: true, maxRetries: 5 });
    process.kill(process.pid, 'SIGTERM');
  });
  return network;
}
