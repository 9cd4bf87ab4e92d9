/**
 * `npm run trust-demo`: shows how a simulated Mac reaches trust level `hardware`, and loses it without System Integrity Protection.
 *
 * Trust levels are read from the public attestation feed, and recomputed by `inference-verify`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AttestationFeed, AttestationRecord } from '@inference/protocol';
import { type Network, startNetwork } from './network/network.js';

const VERIFY = resolve(fileURLToPath(new URL('../packages/verifier/bin/inference-verify.js', import.meta.url)));
const STEP_DEADLINE_MS = 60_000;
const began = Date.now();

function printParagraph(text: string): void {
  console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);
}

async function record(network: Network): Promise<AttestationRecord | undefined> {
  const response = await fetch(`${network.baseUrl}/v1/providers/attestation`);
  return ((await response.json()) as AttestationFeed).providers[0];
}

/** Waits until the public record reports `level`, printing every change of its components. */
async function watchUntil(network: Network, level: AttestationRecord['trust_level']): Promise<void> {
  const deadline = Date.now() + STEP_DEADLINE_MS;
  let lastLine = '';
  for (;;) {
    const now = await record(network);
    if (now !== undefined) {
      const open = now.trust_parts.filter(({ state }) => state !== 'ok').map(({ part, state, reason }) => `${part} ${state} (${reason})`);
      const line = `${now.trust_level}${open.length === 0 ? ': every part holds' : `: ${open.join(', ')}`}`;
      if (line !== lastLine) printParagraph(line);
      lastLine = line;
      if (now.trust_level === level) return;
    }
    if (Date.now() > deadline) throw new Error(`the record did not come to ${level} within ${STEP_DEADLINE_MS / 1000} s`);
    await new Promise((next) => setTimeout(next, 100));
  }
}

async function setProtection(network: Network, dataDir: string, sipEnabled: boolean): Promise<void> {
  const key = readFileSync(join(dataDir, 'device-simulation', 'api-key'), 'utf8');
  const headers = { authorization: `Basic ${Buffer.from(`nanomdm:${key}`).toString('base64')}` };
  const control = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const response = await fetch(`${network.managementUrl}/simulation/v1${path}`, { ...init, headers });
    if (!response.ok) throw new Error(`the simulation answered ${response.status}`);
    return response.json();
  };
  const { macs } = (await control('/macs')) as { macs: { identity: { udid: string } }[] };
  for (const mac of macs) {
    await control(`/macs/${mac.identity.udid}`, { method: 'PATCH', body: JSON.stringify({ protections: { sipEnabled } }) });
  }
}

function verify(network: Network): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [VERIFY, 'network', network.baseUrl], { encoding: 'utf8' });
  console.log(`\n${stdout}${stderr}`);
  if (status !== 0) throw new Error('the public record does not verify');
}

async function demonstrate(network: Network, dataDir: string): Promise<void> {
  printParagraph(`a network is up at ${network.baseUrl}, with one simulated Mac`);
  await watchUntil(network, 'hardware');
  verify(network);
  printParagraph('system integrity protection is turned off on the Mac');
  await setProtection(network, dataDir, false);
  await watchUntil(network, 'self_signed');
  printParagraph('it is turned on again');
  await setProtection(network, dataDir, true);
  await watchUntil(network, 'hardware');
}

async function main(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'inference-trust-demo-'));
  try {
    const coordinatorEnv = { MDM_SECURITY_INTERVAL_SECONDS: '2' };
    const network = await startNetwork({ port: 0, dataDir, providers: 1, hasSimulatedManagement: true, coordinatorEnv });
    try {
      await demonstrate(network, dataDir);
    } finally {
      await network.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
