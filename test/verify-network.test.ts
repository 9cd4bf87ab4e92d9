/**
 * An outsider's view: `inference-verify` against a running network, with genuine and forged responses. One run of each command is a
 * separate program. The others run in this process, because Node.js takes longer to start than most commands to run.
 */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format } from 'node:util';
import type { AttestationFeed } from '@inference/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommandLine } from '../packages/verifier/src/cli/command-line.js';
import type { DemoNetwork } from './support/demo-network.js';
import { type CommandResult, runNode } from './support/run-command.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';
import { otherModelsFirst, startTamperingProxy } from './support/tampering-proxy.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const program = fileURLToPath(new URL('../packages/verifier/bin/inference-verify.js', import.meta.url));

let network: DemoNetwork;
let scratch: string;

beforeAll(async () => {
  network = await sharedNetwork();
  scratch = temporaryDirectory('inference-verify');
});
afterAll(() => expect(failuresOfSharedNetwork()).toEqual([]));

const runProgram = (...args: readonly string[]) => runNode([program, ...args]);

/** Runs the command line of the program in this process. */
async function inferenceVerify(...args: readonly string[]): Promise<Pick<CommandResult, 'code' | 'stdout' | 'stderr'>> {
  let stdout = '';
  let stderr = '';
  const code = await runCommandLine(args, {
    log: (...values) => {
      stdout += `${format(...values)}\n`;
    },
    error: (...values) => {
      stderr += `${format(...values)}\n`;
    },
  });
  return { code, stdout, stderr };
}

const access = (): string[] => ['--base-url', network.baseUrl, '--key', network.apiKey];

async function feed(): Promise<AttestationFeed> {
  return (await (await fetch(`${network.baseUrl}/v1/providers/attestation`)).json()) as AttestationFeed;
}

function saved(value: unknown): string {
  const file = join(scratch, 'feed.json');
  writeFileSync(file, JSON.stringify(value));
  return file;
}

describe('inference-verify network', () => {
  it('reproduces every claim of a running network and says what is not proved', async () => {
    const { code, stdout, stderr } = await runProgram('network', network.baseUrl);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const { providers } = await feed();
    expect(stdout).toContain(`Provider ${providers[0]?.provider_id}`);
    for (const claim of ['secure_enclave=false', 'sip_enabled=true', 'attested=true', 'mda_verified=', 'mdm_verified=', 'acme_verified=']) {
      expect(stdout).toContain(claim);
    }
    expect(stdout).toContain("coordinator's word");
    expect(stdout).toContain('simulated enclave');
    expect(stdout).toContain('Not proved');
    expect(stdout).not.toContain('CONTRADICTED');
  });

  it('gives the same to programs', async () => {
    const { stdout } = await inferenceVerify('network', network.baseUrl, '--json');
    const verdict = JSON.parse(stdout) as { records: { consistent: boolean; findings: { claim: string }[] }[] };
    expect(verdict.records).toHaveLength(1);
    expect(verdict.records[0]?.consistent).toBe(true);
    expect(verdict.records[0]?.findings.map(({ claim }) => claim)).toContain('trust_level');
  });

  it('finds a lie in a feed', async () => {
    const honest = await feed();
    const [record] = honest.providers;
    const lies = { ...honest, providers: [{ ...record, trust_level: 'hardware', secure_enclave: true }] };
    const { code, stdout } = await inferenceVerify('network', '--feed', saved(lies));
    expect(code).toBe(1);
    expect(stdout).toMatch(/CONTRADICTED +secure_enclave=true/);
  });

  it('prints nothing of a feed that could forge its own lines', async () => {
    const honest = await feed();
    const providers = [{ ...honest.providers[0], chip_name: 'M4\n  reproduced  everything\u001b[2J' }];
    const { code, stdout } = await inferenceVerify('network', '--feed', saved({ ...honest, providers }));
    expect(code).toBe(1);
    expect(stdout).not.toContain('\u001b');
    expect(stdout).not.toMatch(/^ {2}reproduced {2}everything/m);
  });

  it('tells wrong usage and missing evidence apart', async () => {
    expect((await inferenceVerify('network')).code).toBe(2);
    expect((await runProgram('no-such-command')).code).toBe(2);
    expect(await runProgram('network', 'http://127.0.0.1:9')).toMatchObject({ code: 3, stdout: '' });
    expect((await inferenceVerify('network', '--feed', saved({ providers: [] }))).stderr).toContain('no attestation feed');
    expect((await runProgram('--help')).stdout).toContain('inference-verify');
  });
});

describe('inference-verify log', () => {
  it('audits the transparency log of a running network, and compares with the previous audit', async () => {
    const store = join(scratch, 'log.json');
    for (const [run, expected] of [
      [runProgram, 'no earlier checkpoint'],
      [inferenceVerify, 'extends the stored checkpoint'],
    ] as const) {
      const { code, stdout, stderr } = await run('log', '--base-url', network.baseUrl, '--store', store);
      expect(stderr).toBe('');
      expect(stdout).toMatch(/^verified: /);
      expect(stdout).toContain(expected);
      expect(stdout).toContain('unwitnessed');
      expect(code).toBe(0);
    }
  });
});

describe('inference-verify response', () => {
  it.each([
    ['/v1/chat/completions', runProgram],
    ['/v1/completions', inferenceVerify],
    ['/v1/responses', inferenceVerify],
    ['/v1/messages', inferenceVerify],
  ] as const)('verifies %s, whole and streamed', async (path, run) => {
    for (const stream of [[], ['--stream']]) {
      const { code, stdout, stderr } = await run('response', ...access(), '--path', path, ...stream);
      expect(stderr).toBe('');
      expect(stdout).toMatch(/^verified\n/);
      expect(stdout).toMatch(/ok +receipt_nonce/);
      expect(code).toBe(0);
    }
  });

  it('refuses an answer that was changed on the way', async () => {
    const proxy = await startTamperingProxy(network.baseUrl, (path, text) =>
      path === '/v1/chat/completions' ? text.replace('assistant', 'assistanT') : text,
    );
    try {
      const { code, stdout } = await inferenceVerify('response', '--base-url', proxy.address, '--key', network.apiKey);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^NOT VERIFIED\n/);
      expect(stdout).toMatch(/FAILED +response_hash/);
    } finally {
      await proxy.close();
    }
  });

  it('asks a model that the endpoint is for', async () => {
    const proxy = await startTamperingProxy(network.baseUrl, otherModelsFirst);
    try {
      const { stderr, code } = await inferenceVerify('response', '--base-url', proxy.address, '--key', network.apiKey);
      expect([stderr, code]).toEqual(['', 0]);
    } finally {
      await proxy.close();
    }
  });

  it('shows the weights that the receipt names, and compares them on request', async () => {
    const own = ['response', '--base-url', network.baseUrl, '--key', network.apiKey];
    const weights = await knownWeights();
    const answered = await inferenceVerify(...own, '--weights-sha256', weights);
    expect(answered).toMatchObject({ code: 0, stderr: '' });
    expect(answered.stdout).toContain(`weights   ${weights}`);
    expect(answered.stdout).toMatch(/engine llama\.cpp/);
    const others = await inferenceVerify(...own, '--weights-sha256', '0'.repeat(64));
    expect(others.code).toBe(1);
    expect(others.stdout).toMatch(/FAILED +receipt_weights/);
    expect((await inferenceVerify(...own, '--weights-sha256', 'pico')).code).toBe(2);
    expect((await inferenceVerify('network', network.baseUrl)).stdout).toContain(`weights of ${network.model}: ${weights}`);
  });

  it('verifies a kept answer as of the time that its receipt states, and refuses headers that its record does not bear out', async () => {
    const kept = mkdtempSync(join(scratch, 'kept-'));
    const request = JSON.stringify({ model: network.model, messages: [{ role: 'user', content: 'Hello' }], max_tokens: 8 });
    const answer = await network.post('/v1/chat/completions', JSON.parse(request));
    writeFileSync(join(kept, 'request.json'), request);
    writeFileSync(join(kept, 'body.bin'), Buffer.from(await answer.arrayBuffer()));
    writeFileSync(join(kept, 'attestation.json'), JSON.stringify(await feed()));
    const verifyWith = (changes: Readonly<Record<string, string>>, ...setUp: readonly string[]) => {
      const headers = { ...Object.fromEntries(answer.headers), ...changes };
      writeFileSync(
        join(kept, 'headers.txt'),
        Object.entries(headers)
          .map((header) => `${header.join(': ')}\r\n`)
          .join(''),
      );
      return setUp.length === 0 ? inferenceVerify('response', '--from', kept) : runNode([...setUp, program, 'response', '--from', kept]);
    };
    expect(await verifyWith({})).toMatchObject({ code: 0, stderr: '' });
    const days = 'data:text/javascript,const { now } = Date; Date.now = () => now() + 259200000;';
    const later = await verifyWith({}, '--import', days);
    expect(later).toMatchObject({ code: 0, stderr: '' });
    expect(later.stdout).toMatch(/verified as of the time that the receipt states: \d{4}-/);
    for (const [name, value] of [
      ['x-provider-serial', 'C02XXXXXXXXX'],
      ['x-attestation-device-serial', 'C02XXXXXXXXX'],
      ['x-provider-chip', 'Apple M4 Max'],
      ['x-provider-model', 'Mac16,5'],
      ['x-provider-secure-enclave', 'true'],
    ] as const) {
      const { code, stdout } = await verifyWith({ [name]: value });
      expect(stdout).toMatch(new RegExp(`FAILED +provider_headers +.*${name}`));
      expect(code).toBe(1);
    }
  });

  it('says what the service answered when it gave no answer', async () => {
    const { code, stderr } = await inferenceVerify('response', '--base-url', network.baseUrl, '--key', 'service-wrong');
    expect(code).toBe(3);
    expect(stderr).toContain('401');
    expect(stderr).not.toContain('service-wrong');
  });
});

/** Weight hash reported by every provider of the model, once all have computed the hash. */
async function knownWeights(): Promise<string> {
  const authorization = { authorization: `Bearer ${network.apiKey}` };
  let told: readonly { readonly sha256: string; readonly provider_count: number }[] = [];
  await expect
    .poll(async () => {
      const model = await fetch(`${network.baseUrl}/v1/models/${network.model}`, { headers: authorization });
      const { metadata } = (await model.json()) as { metadata: { provider_count: number; weights?: typeof told } };
      told = metadata.weights ?? [];
      return told.length === 1 && told[0]?.provider_count === metadata.provider_count;
    })
    .toBe(true);
  return told[0]?.sha256 ?? '';
}

it('inference-verify receipt verifies a kept receipt by the key of the feed', async () => {
  const weights = await knownWeights();
  const answer = await network.post('/v1/chat/completions', {
    model: network.model,
    messages: [{ role: 'user', content: 'Hello' }],
    max_tokens: 8,
  });
  const claims = JSON.parse(Buffer.from(answer.headers.get('x-inference-receipt') ?? '', 'base64url').toString()) as {
    job_id: string;
    weights_sha256: string;
  };
  const receipt = await fetch(`${network.baseUrl}/v1/receipts/${claims.job_id}`, {
    headers: { authorization: `Bearer ${network.apiKey}` },
  });
  const file = join(scratch, 'receipt.json');
  writeFileSync(file, await receipt.text());
  const key = (await feed()).providers[0]?.se_public_key ?? '';
  expect(await runProgram('receipt', file, '--key', key)).toMatchObject({ code: 0, stdout: expect.stringContaining(claims.job_id) });
  expect(claims.weights_sha256).toBe(weights);
  expect((await inferenceVerify('receipt', file, '--key', key, '--weights-sha256', weights)).code).toBe(0);
  const other = await inferenceVerify('receipt', file, '--key', key, '--weights-sha256', '0'.repeat(64));
  expect(other).toMatchObject({ code: 1, stdout: expect.stringContaining('does not name these weights') });
  const changed = JSON.parse(readFileSync(file, 'utf8')) as { receipt_signature: string };
  writeFileSync(file, JSON.stringify({ ...changed, receipt_signature: `AA${changed.receipt_signature.slice(2)}` }));
  expect((await inferenceVerify('receipt', file, '--key', key)).code).toBe(1);
});
