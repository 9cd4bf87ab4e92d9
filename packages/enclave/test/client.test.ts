import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type Enclave, openEnclave } from '../src/client/enclave.js';
import type { EnclaveEvent } from '../src/client/events.js';

const misbehavingHelper = fileURLToPath(new URL('./fixtures/misbehaving-helper.mjs', import.meta.url));
const odd = (key = 'A', contract = '1', temper = 'calm') => [process.execPath, misbehavingHelper, key, contract, temper];

/** Time limit of a request. Longer than the start of a helper on a busy machine. */
const TIMEOUT_MS = 60_000;

const opened: Enclave[] = [];
let events: EnclaveEvent[] = [];

async function open(command: readonly string[], timeoutMs = TIMEOUT_MS): Promise<Enclave> {
  events = [];
  const enclave = await openEnclave({ command, timeoutMs, onEvent: (event) => events.push(event) });
  opened.push(enclave);
  return enclave;
}

const pids = () => events.flatMap((event) => (event.type === 'started' ? [event.pid] : []));

/** Waits until the helper hangs, then advances the fake clock by the time limit of requests. */
async function passTimeLimit(): Promise<void> {
  await expect.poll(() => events.some((event) => event.type === 'stderr' && event.line === 'hangs')).toBe(true);
  vi.advanceTimersByTime(TIMEOUT_MS);
  vi.useRealTimers();
}

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(opened.splice(0).map((enclave) => enclave.close()));
  for (const pid of pids()) expect(isAlive(pid)).toBe(false);
});

describe('a helper that violates the contract', () => {
  it.each(['other output', 'not text', 'huge line', 'wrong id', 'no id', 'text id', 'malformed', 'unknown error'])(
    'is replaced after %s, and the next request succeeds',
    async (oddity) => {
      const enclave = await open(odd());
      await expect(enclave.attest({ version: oddity })).rejects.toMatchObject({ name: 'EnclaveError', code: 'bad_reply' });
      expect(await enclave.attest({ version: 'ok' })).toEqual({ payload: 'e30=', signature: 'AAAA' });
      expect(new Set(pids()).size).toBe(2);
      expect(isAlive(pids()[0] as number)).toBe(false);
    },
  );

  it('passes refusals on and stays usable', async () => {
    const enclave = await open(odd());
    await expect(enclave.attest({ version: 'refusal' })).rejects.toMatchObject({ code: 'no_enclave' });
    await enclave.attest({ version: 'ok' });
    expect(pids()).toHaveLength(1);
  });

  it.each(['exit', 'half a line'])('is replaced after its end by %s', async (oddity) => {
    const enclave = await open(odd());
    await expect(enclave.attest({ version: oddity })).rejects.toMatchObject({ code: 'exited' });
    await enclave.attest({ version: 'ok' });
    expect(pids()).toHaveLength(2);
  });

  it.each(['hang', 'busy loop'])('is killed without an answer: %s', async (oddity) => {
    const enclave = await open(odd());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const hung = enclave.attest({ version: oddity });
    await passTimeLimit();
    await expect(hung).rejects.toMatchObject({ code: 'timeout' });
    await enclave.attest({ version: 'ok' });
    expect(isAlive(pids()[0] as number)).toBe(false);
  });

  it('fails other pending requests when killed', async () => {
    const enclave = await open(odd());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const hung = enclave.attest({ version: 'hang' });
    const other = enclave.attest({ version: 'hang' });
    const outcome = expect(other).rejects.toMatchObject({ code: 'restarted' });
    await passTimeLimit();
    await expect(hung).rejects.toMatchObject({ code: 'timeout' });
    await outcome;
  });
});

describe('a helper that dies', () => {
  it('is replaced between requests', async () => {
    const enclave = await open(odd());
    process.kill(pids()[0] as number, 'SIGKILL');
    await waitFor(() => events.some((event) => event.type === 'ended'));
    await enclave.attest({ version: 'ok' });
    expect(pids()).toHaveLength(2);
  });

  it('fails only its own pending requests', async () => {
    const enclave = await open(odd());
    const waiting = Array.from({ length: 20 }, () => enclave.attest({ version: 'hang' }));
    const outcomes = Promise.allSettled(waiting);
    process.kill(pids()[0] as number, 'SIGKILL');
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'exited' } });
    await Promise.all(Array.from({ length: 20 }, () => enclave.attest({ version: 'ok' })));
  });

  it('comes back with growing pauses', async () => {
    const enclave = await open(odd());
    for (let i = 0; i < 4; i++) await enclave.attest({ version: 'exit' }).catch(() => {});
    await enclave.attest({ version: 'ok' });
    const pauses = events.flatMap((event) => (event.type === 'restarting' ? [event.delayMs] : []));
    expect(pauses).toEqual([50, 100, 200, 400]);
  });

  it('is not used any more after a restart with another key', async () => {
    const enclave = await open(odd('new'));
    process.kill(pids()[0] as number, 'SIGKILL');
    await waitFor(() => events.some((event) => event.type === 'failed_closed'));
    for (let i = 0; i < 3; i++) await expect(enclave.attest({ version: 'ok' })).rejects.toMatchObject({ code: 'key_changed' });
    await enclave.close();
    expect(events.filter((event) => event.type === 'restarting')).toHaveLength(1);
  });
});

describe('opening', () => {
  it.each([
    ['there is no such program', ['/nonexistent/helper'], 'start_failed'],
    ['the command cannot be one', ['/bin/sh', 'a\0b'], 'start_failed'],
    ['the command is empty', [], 'start_failed'],
    ['the program ends at once', ['/bin/sh', '-c', 'exit 7'], 'exited'],
    ['the program is no helper', ['/bin/sh', '-c', 'echo hello; cat'], 'bad_reply'],
    ['it says more than its handshake', odd('A', '1', 'talkative'), 'bad_reply'],
    ['it speaks another contract', odd('A', '2'), 'contract_mismatch'],
    ['a simulated helper claims an enclave', odd('A', '1', 'boastful'), 'bad_reply'],
  ])('fails when %s', async (_, command, code) => {
    await expect(open(command)).rejects.toMatchObject({ name: 'EnclaveError', code });
  });

  it('assumes receipt version 1 for a helper without receipt versions', async () => {
    expect((await open(odd())).receiptVersions).toEqual([1]);
  });

  it('fails in time when the helper says nothing', async () => {
    await expect(open(odd('A', '1', 'mute'), 700)).rejects.toMatchObject({ code: 'timeout' });
  });

  it('gives the helper no variable of the agent', async () => {
    process.env.SECRET_API_KEY = 'secret';
    const enclave = await open(odd());
    delete process.env.SECRET_API_KEY;
    const { payload } = await enclave.attest({ version: 'environment' });
    const names = Object.keys(JSON.parse(Buffer.from(payload, 'base64').toString()));
    expect(['PATH', 'HOME', 'TMPDIR', 'USER', 'LANG']).toEqual(expect.arrayContaining(names));
  });
});

describe('a caller', () => {
  it('that aborts gets its error at once, and the late reply is no violation', async () => {
    const enclave = await open(odd());
    const caller = new AbortController();
    const aborted = expect(enclave.attest({ version: 'late' }, caller.signal)).rejects.toMatchObject({ code: 'aborted' });
    caller.abort();
    await aborted;
    // The helper sends the late reply first.
    await enclave.attest({ version: 'ok' });
    expect(pids()).toHaveLength(1);
  });

  it('that aborted before sends nothing', async () => {
    const enclave = await open(odd());
    await expect(enclave.attest({ version: 'exit' }, AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' });
    await enclave.attest({ version: 'ok' });
    expect(pids()).toHaveLength(1);
  });

  it('cannot send a line over the cap', async () => {
    const enclave = await open(odd());
    await expect(enclave.attest({ version: 'v'.repeat(70_000) })).rejects.toMatchObject({ code: 'bad_request' });
    await enclave.attest({ version: 'ok' });
  });

  it("receives the helper's stderr, bounded and printable", async () => {
    const enclave = await open(odd());
    await enclave.attest({ version: 'talk' });
    await waitFor(() => events.filter((event) => event.type === 'stderr').length >= 200);
    const lines = events.flatMap((event) => (event.type === 'stderr' ? [event.line] : []));
    expect(lines).toHaveLength(200);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there.
    for (const line of lines) expect(line).toMatch(/^[^\u0000-\u001f]{1,512}$/);
  });
});

describe('closing', () => {
  it('fails pending and later requests', async () => {
    const enclave = await open(odd());
    const waiting = expect(enclave.attest({ version: 'hang' })).rejects.toMatchObject({ code: 'closed' });
    await enclave.close();
    await waiting;
    await expect(enclave.attest({ version: 'ok' })).rejects.toMatchObject({ code: 'closed' });
    await enclave.close();
  });

  it('ends a helper that ignores the end of its input and SIGTERM', async () => {
    const enclave = await open(odd('A', '1', 'stubborn'));
    await enclave.close();
    expect(isAlive(pids()[0] as number)).toBe(false);
  });

  it('works while a restart is pending', async () => {
    const enclave = await open(odd());
    await enclave.attest({ version: 'exit' }).catch(() => {});
    const waiting = enclave.attest({ version: 'ok' });
    const outcome = expect(waiting).rejects.toMatchObject({ code: 'closed' });
    await enclave.close();
    await outcome;
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function waitFor(condition: () => boolean): Promise<void> {
  await expect.poll(condition).toBe(true);
}
