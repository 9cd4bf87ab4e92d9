/** `sharedNetwork`: one network per test process, for test files that neither stop nor configure a network. Started on first use. */
import { rmSync } from 'node:fs';
import { type DemoNetwork, startDemoNetwork } from './demo-network.js';

let started: Promise<DemoNetwork> | undefined;
const failures: string[] = [];

/** A running network with one provider. Must not be stopped or damaged. */
export function sharedNetwork(): Promise<DemoNetwork> {
  started ??= start();
  return started;
}

/** Crashes of the network's programs, for a check that there were none. */
export function failuresOfSharedNetwork(): readonly string[] {
  return failures;
}

async function start(): Promise<DemoNetwork> {
  const note = (text: string): void => void failures.push(text);
  const { network } = await startDemoNetwork({ onNotice: note, onFailure: note });
  // The test runner sends SIGTERM, and SIGKILL half a second later.
  process.once('SIGTERM', () => {
    for (const { current } of [...network.providers, network.coordinator]) current.kill('SIGKILL');
    rmSync(network.dataDir, { recursive: true, force: true, maxRetries: 5 });
    process.kill(process.pid, 'SIGTERM');
  });
  return network;
}
