import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { openAttestation, openChallengeAnswer } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import { type Enclave, openEnclave } from '../src/client/enclave.js';
import type { EnclaveEvent } from '../src/client/events.js';
import { nativeHelperCommand, nativeHelperPath, simulatedHelperCommand } from '../src/commands.js';
import { KEY_FILE } from '../src/simulated/key-file.js';
import { MACHINE_FILE, type SimulatedMachine } from '../src/simulated/machine.js';
import { nonce, receiptDraft, verifyP256, withDirectory } from './samples.js';

type Watched = { enclave: Enclave; events: EnclaveEvent[]; directory: string };

function withEnclave(profile: SimulatedMachine | undefined, use: (watched: Watched) => Promise<void>): () => Promise<void> {
  return () =>
    withDirectory(async (directory) => {
      const events: EnclaveEvent[] = [];
      const command = simulatedHelperCommand({ dataDir: directory, ...(profile === undefined ? {} : { profile }) });
      const enclave = await openEnclave({ command, onEvent: (event) => events.push(event) });
      try {
        await use({ enclave, events, directory });
      } finally {
        await enclave.close();
      }
    });
}

const attestationOf = async (enclave: Enclave) =>
  openAttestation(await enclave.attest({ version: '1' }), enclave.publicKey, verifyP256).value;
const postureOf = async (enclave: Enclave) =>
  openChallengeAnswer(await enclave.answerChallenge(nonce(), 's'), enclave.publicKey, verifyP256).value.posture;

describe('the simulated machine', () => {
  it(
    'says that it is simulated, and passes for a healthy Mac otherwise',
    withEnclave(undefined, async ({ enclave }) => {
      expect(enclave).toMatchObject({ kind: 'simulated', keyProtection: 'software', secureEnclave: false });
      const attestation = await attestationOf(enclave);
      expect(attestation).toMatchObject({ chip_name: 'Simulated M-series', key_protection: 'software' });
      expect(attestation.serial_number).toMatch(/^SIM[0-9A-Z]{9}$/);
      expect(attestation.posture).toEqual({
        secure_enclave: false,
        sip_enabled: true,
        secure_boot_enabled: true,
        authenticated_root_enabled: true,
      });
    }),
  );

  it(
    'has a serial number of its own',
    withEnclave(undefined, async ({ enclave }) => {
      const first = await attestationOf(enclave);
      await withEnclave(undefined, async (other) => {
        expect((await attestationOf(other.enclave)).serial_number).not.toBe(first.serial_number);
      })();
    }),
  );

  it(
    'takes a profile',
    withEnclave({ chip_name: 'Simulated M9', memory_gb: 512, serial_number: 'SIMTESTTEST1', sip_enabled: false }, async ({ enclave }) => {
      expect(await attestationOf(enclave)).toMatchObject({ chip_name: 'Simulated M9', memory_gb: 512, serial_number: 'SIMTESTTEST1' });
      expect(await postureOf(enclave)).toMatchObject({ sip_enabled: false, secure_boot_enabled: true });
    }),
  );

  it(
    'changes its posture while it runs, and never on a broken file',
    withEnclave(undefined, async ({ enclave, directory }) => {
      const file = join(directory, MACHINE_FILE);
      expect(await postureOf(enclave)).toMatchObject({ sip_enabled: true });
      await writeFile(file, '{"sip_enabled":false}');
      expect(await postureOf(enclave)).toMatchObject({ sip_enabled: false, secure_boot_enabled: true });
      for (const broken of ['', '{', '[]', '{"sip_enabled":"yes"}', '{"secure_enclave":true}']) {
        await writeFile(file, broken);
        await expect(postureOf(enclave)).rejects.toMatchObject({ name: 'EnclaveError' });
      }
      await rm(file);
      expect(await postureOf(enclave)).toMatchObject({ sip_enabled: true });
    }),
  );
});

describe('the client with the simulated helper', () => {
  it(
    'signs on after kill -9 during requests, with the same key',
    withEnclave(undefined, async ({ enclave, events }) => {
      const work = Array.from({ length: 200 }, () => enclave.signResponse(receiptDraft()));
      const outcomes = Promise.allSettled(work);
      process.kill(startedPids(events)[0] as number, 'SIGKILL');
      for (const outcome of await outcomes) {
        if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ name: 'EnclaveError', code: 'exited' });
      }
      expect((await enclave.signResponse(receiptDraft())).signature).toMatch(/^[A-Za-z0-9+/]+=*$/);
      expect(startedPids(events)).toHaveLength(2);
    }),
  );

  it(
    'fails closed when the key file is replaced behind its back',
    withEnclave(undefined, async ({ enclave, events, directory }) => {
      await rm(join(directory, KEY_FILE));
      process.kill(startedPids(events)[0] as number, 'SIGKILL');
      await expect(repeat(() => enclave.signResponse(receiptDraft()))).rejects.toMatchObject({ code: 'key_changed' });
      await expect(enclave.attest({ version: '1' })).rejects.toMatchObject({ code: 'key_changed' });
    }),
  );

  it(
    'says key_unavailable while the key file is damaged, and goes on when it is mended',
    withEnclave(undefined, async ({ enclave, events, directory }) => {
      const { readFile } = await import('node:fs/promises');
      const file = join(directory, KEY_FILE);
      const saved = await readFile(file);
      await writeFile(file, 'damaged');
      process.kill(startedPids(events)[0] as number, 'SIGKILL');
      await expect(repeat(() => enclave.signResponse(receiptDraft()))).rejects.toMatchObject({ code: 'key_unavailable' });
      expect(await readFile(file, 'utf8')).toBe('damaged');
      await writeFile(file, saved);
      await expect.poll(() => enclave.signResponse(receiptDraft()).then(() => 'signed', String)).toBe('signed');
    }),
  );

  it('leaves no helper behind when the agent is killed', () =>
    withDirectory(async (directory) => {
      const agent = fileURLToPath(new URL('./fixtures/agent.mjs', import.meta.url));
      const child = spawn(process.execPath, [agent, ...simulatedHelperCommand({ dataDir: directory })], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const pid = await new Promise<number>((resolve) =>
        createInterface({ input: child.stdout }).once('line', (line) => resolve(Number(line))),
      );
      expect(isAlive(pid)).toBe(true);
      child.kill('SIGKILL');
      await expect.poll(() => isAlive(pid)).toBe(false);
    }));
});

describe('where the helpers are', () => {
  it('offers the native helper on a built Mac only', () => {
    if (process.platform === 'darwin') return;
    expect(nativeHelperPath()).toBeNull();
    expect(nativeHelperCommand({ dataDir: 'data' })).toBeNull();
  });
});

/** Repeats until failure; a request may still succeed before the exit is noticed. */
async function repeat(request: () => Promise<unknown>): Promise<never> {
  for (;;) {
    try {
      await request();
    } catch (error) {
      if (!['exited', 'restarted'].includes((error as { code: string }).code)) throw error;
    }
  }
}

function startedPids(events: readonly EnclaveEvent[]): number[] {
  return events.flatMap((event) => (event.type === 'started' ? [event.pid] : []));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
