/**
 * Every verifier accepts and refuses the same responses: the library, `inference-verify`, `scripts/verify-response.sh`, and the web
 * console's code in Node and in a browser. Responses come from one table.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { providerFacts } from '../apps/console/src/pages/playground/requests/provider-facts.js';
import { evaluateAnswer } from '../apps/console/src/pages/playground/verification/evaluate-answer.js';
import { responseCommand } from '../packages/verifier/src/cli/response.js';
import { verifyAnswer } from '../packages/verifier/src/verify-answer.js';
import { type AnswerCase, answerCases, type KeptAnswer, keptAnswer } from '../packages/verifier/test/answer-cases.js';
import { NOW } from '../packages/verifier/test/published-record.js';
import { describeInBrowser, sharedBrowser } from './support/console/browser.js';
import { runCommand } from './support/run-command.js';
import { temporaryDirectory } from './support/temporary-directory.js';

const SCRIPT = fileURLToPath(new URL('../scripts/verify-response.sh', import.meta.url));
const cases = answerCases();

const folder = temporaryDirectory('verifiers-agree');

/** Saves a response like `verify-response.sh --save`. Returns the folder. */
function keep(answer: KeptAnswer, name: string): string {
  const directory = join(folder, name);
  mkdirSync(directory, { recursive: true });
  const file = (path: string, content: string | Uint8Array) => writeFileSync(join(directory, path), content);
  file('path.txt', answer.path);
  file('request.json', answer.request);
  file('body.bin', answer.body);
  const headers = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  file('headers.txt', `HTTP/1.1 200 OK\r\n${headers.join('')}\r\n`);
  file('attestation.json', JSON.stringify(answer.feed, null, 1));
  if (answer.nonce !== null) file('nonce.txt', answer.nonce);
  for (const [index, image] of answer.images.entries()) file(`image-${index + 1}.bin`, image);
  return directory;
}

interface Outcome {
  readonly verdict: 'verified' | 'refused';
  readonly enclave: string | null;
}

type Verifier = (one: AnswerCase, index: number) => Outcome | Promise<Outcome>;

const library: Verifier = ({ answer }) => {
  const { path, request, images, ...rest } = answer;
  const received = { ...rest, endpoint: path, request: new TextEncoder().encode(request), ...(images.length === 0 ? {} : { images }) };
  const { verified, enclave } = verifyAnswer(received, 'receipt');
  return { verdict: verified ? 'verified' : 'refused', enclave };
};

const commandLine: Verifier = async ({ answer }, index) => {
  const report = await responseCommand.run(['--from', keep(answer, `cli-${index}`)]);
  const [first, second = ''] = report.text.split('\n');
  expect(first).toBe(report.verified ? 'verified' : 'NOT VERIFIED');
  return {
    verdict: report.verified ? 'verified' : 'refused',
    enclave: /^(SIMULATED|CLAIMED|CERTIFIED)/.exec(second)?.[1]?.toLowerCase() ?? null,
  };
};

const runScript = (...args: string[]) => runCommand('sh', [SCRIPT, ...args]);

const script: Verifier = async ({ answer }, index) => {
  const { code, output } = await runScript('--from', keep(answer, `script-${index}`));
  const last = output.trimEnd().split('\n').at(-1) ?? '';
  if (code === 0) expect(last).toBe('verified');
  else expect([code, last]).toEqual([1, expect.stringMatching(/^FAILED: /)]);
  return { verdict: code === 0 ? 'verified' : 'refused', enclave: /^ {2}(SIMULATED|CLAIMED)/m.exec(output)?.[1]?.toLowerCase() ?? null };
};

/** Input of the page's verification. From a stream's headers, the page knows the provider facts only. */
function judgedByConsole({ answer }: AnswerCase, now: number): Outcome {
  const headers = new Headers(answer.headers);
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
  const check = evaluateAnswer(
    {
      requestBody: answer.request,
      nonce: answer.nonce,
      endpoint: answer.path,
      provider: providerFacts(headers),
      feed: answer.feed,
      answer: isStream
        ? { kind: 'stream', bytes: answer.body }
        : { kind: 'plain', bytes: answer.body, headers, ...(answer.images.length === 0 ? {} : { images: answer.images }) },
    },
    now,
  );
  const verdict = check.state === 'verified' ? 'verified' : 'refused';
  return { verdict, enclave: check.state === 'verified' ? check.enclave : null };
}

async function outcomes(verifier: Verifier): Promise<Record<string, Outcome>> {
  const found: Record<string, Outcome> = {};
  for (const [index, one] of cases.entries()) found[one.name] = await verifier(one, index);
  return found;
}

const expectedOutcomes = (enclaveOf: (one: AnswerCase) => unknown) =>
  Object.fromEntries(cases.map((one) => [one.name, { verdict: one.expected, enclave: enclaveOf(one) }]));
/** Claims about the machine matter only for verified responses. */
const ofVerified = ({ expected, enclave }: AnswerCase) => (expected === 'verified' ? enclave : expect.toSatisfy(() => true));

/** Exports of the bundle for the page. */
interface Verifiers {
  readonly verifyAnswer: typeof verifyAnswer;
  readonly evaluateAnswer: typeof evaluateAnswer;
  readonly providerFacts: typeof providerFacts;
}

describe('the table of answers', () => {
  it('names each case once, and has both kinds', () => {
    expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
    expect(cases.filter(({ expected }) => expected === 'verified').length).toBeGreaterThan(20);
    expect(cases.filter(({ expected }) => expected === 'refused').length).toBeGreaterThan(80);
  });

  it.each<[string, Verifier]>([
    ['the library', library],
    ['inference-verify', commandLine],
    ["the console's check", (one) => judgedByConsole(one, NOW)],
  ])('is judged so by %s', async (_, verifier) => {
    const wanted = expectedOutcomes(ofVerified);
    expect(await outcomes(verifier)).toEqual(wanted);
  });

  it.each(cases.map((one, index) => ({ name: one.name, one, index })))(
    'is judged so by verify-response.sh: $name',
    async ({ one, index }) => {
      expect(await script(one, index)).toEqual({ verdict: one.expected, enclave: ofVerified(one) });
    },
  );
});

describeInBrowser('the table of answers in a browser', () => {
  it("is judged so by the library and by the console's check", async () => {
    const bundle = await build({
      stdin: {
        contents: `
          export { verifyAnswer } from './packages/verifier/src/index.ts';
          export { evaluateAnswer } from './apps/console/src/pages/playground/verification/evaluate-answer.ts';
          export { providerFacts } from './apps/console/src/pages/playground/requests/provider-facts.ts';`,
        resolveDir: fileURLToPath(new URL('..', import.meta.url)),
        loader: 'ts',
      },
      bundle: true,
      write: false,
      format: 'iife',
      globalName: 'verifiers',
      platform: 'browser',
      target: 'es2022',
    });
    const context = await (await sharedBrowser()).newContext();
    try {
      const page = await context.newPage();
      await page.addScriptTag({ content: bundle.outputFiles[0]?.text ?? '' });
      const sent = cases.map(({ answer, ...rest }) => ({
        ...rest,
        answer: { ...answer, body: [...answer.body], images: answer.images.map((image) => [...image]) },
      }));
      const found = await page.evaluate(
        ([all, now]) => {
          const { verifyAnswer, evaluateAnswer, providerFacts } = (globalThis as unknown as { verifiers: Verifiers }).verifiers;
          return all.map(({ name, answer }) => {
            const { path: endpoint, request, nonce, feed } = answer;
            const body = Uint8Array.from(answer.body);
            const images = answer.images.map((image) => Uint8Array.from(image));
            const headers = new Headers(answer.headers);
            const known = images.length === 0 ? {} : { images };
            const common = { nonce, feed, endpoint };
            const byLibrary = verifyAnswer({ ...common, request: new TextEncoder().encode(request), body, headers, ...known }, 'receipt');
            const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true;
            const byConsole = evaluateAnswer(
              {
                ...common,
                requestBody: request,
                provider: providerFacts(headers),
                answer: isStream ? { kind: 'stream', bytes: body } : { kind: 'plain', bytes: body, headers, ...known },
              },
              now,
            );
            return [name, byLibrary.verified, byConsole.state === 'verified', byLibrary.verified ? byLibrary.enclave : null] as const;
          });
        },
        [sent, NOW] as const,
      );
      const wanted = cases.map(({ name, expected, enclave }) => {
        const isVerified = expected === 'verified';
        return [name, isVerified, isVerified, isVerified ? enclave : null];
      });
      expect(found).toEqual(wanted);
    } finally {
      await context.close();
    }
  });
});

describe('--require', () => {
  const simulated = { keyProtection: 'software', posture: { secure_enclave: false } } as const;
  it.each([
    ['claimed', 'self_signed', {}, true],
    ['claimed', 'hardware', {}, false],
    ['simulated', 'self_signed', { record: simulated }, false],
    ['simulated', 'hardware', { record: simulated }, false],
    ['certified by a test authority', 'hardware', { record: { level: 'hardware' } }, false],
  ] as const)('of a machine that is %s: %s', async (name, level, changes, passes) => {
    const directory = keep(keptAnswer(changes), `require-${name.replaceAll(' ', '-')}-${level}`);
    const report = await responseCommand.run(['--from', directory, '--require', level]);
    expect(report.verified).toBe(passes);
    const { code, output } = await runScript('--from', directory, '--require', level);
    expect([code, output.trimEnd().split('\n').at(-1)]).toEqual(passes ? [0, 'verified'] : [1, expect.stringMatching(/^FAILED: required/)]);
  });

  it('of a level that does not exist is wrong usage', async () => {
    const directory = keep(keptAnswer(), 'require-nothing');
    await expect(responseCommand.run(['--from', directory, '--require', 'best'])).rejects.toThrow('--require must be');
    expect((await runScript('--from', directory, '--require', 'best')).code).toBe(2);
  });
});
