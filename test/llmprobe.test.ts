/**
 * Third-party conformance suite `llmprobe` against a running network: every MUST assertion holds in every format. Unsupported
 * features are listed here, with reasons.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DemoNetwork } from './support/demo-network.js';
import { ROOT } from './support/npm-start.js';
import { runCommand } from './support/run-command.js';
import { failuresOfSharedNetwork, sharedNetwork } from './support/shared-network.js';

/** Known failing checks, with reasons. An entry that passes fails the test. */
const EXPECTED_FAILURES: Readonly<Record<string, string>> = {};

/** Features the suite may find unsupported, with reasons. Any other missing feature is a regression. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  'chat-vision': 'the demo model reads no images',
  'responses-vision': 'as in chat',
  'messages-vision': 'as in chat',
  'chat-n-choices': 'one choice for each request (specification)',
  'chat-rate-limit-headers': 'sent only where a limit is set',
  'responses-rate-limit-headers': 'sent only where a limit is set',
  'messages-rate-limit-headers': 'sent only where a limit is set',
  'responses-reasoning-roundtrip': 'the suite knows no form of it for this format',
  'responses-previous-response-id': 'nothing of a request is stored, so there is nothing to continue',
  'responses-background': 'nothing of an answer is stored, so there is nothing to fetch later',
  'responses-mcp-tools': 'the suite does not test it',
  'embeddings-basic': 'not part of the specification',
  'embeddings-dimensions': 'not part of the specification',
  'images-generate': 'no provider of the demo network makes images',
  'images-edit': 'not part of the specification',
  'audio-speech': 'not part of the specification',
};

/** Minimum count of MUST assertions per format; fewer means skipped checks. */
const MIN_ASSERTIONS: Readonly<Record<string, number>> = {
  models: 4,
  chat: 60,
  responses: 57,
  messages: 57,
  'count-tokens': 3,
  completions: 3,
};

/** The suite takes half a minute on an idle machine; each request has its own deadline. */
const WHOLE_RUN_MS = 10 * 60_000;

interface Check {
  readonly id: string;
  readonly outcome: 'pass' | 'fail' | 'inconclusive' | 'skipped' | 'unsupported';
  readonly reason?: string;
  readonly failures: readonly { readonly severity: string; readonly label: string; readonly message: string }[];
}

interface Report {
  readonly conformance: {
    readonly bySurface: readonly { readonly surface: string; readonly passed: number; readonly total: number }[];
    readonly results: readonly Check[];
  };
}

let network: DemoNetwork;
let report: Report;

beforeAll(async () => {
  network = await sharedNetwork();
  report = await probe();
}, WHOLE_RUN_MS);
afterAll(() => expect(failuresOfSharedNetwork()).toEqual([]));

async function probe(): Promise<Report> {
  const argv = [network.baseUrl, '-k', network.apiKey, '-m', network.model, '--no-save', '--no-bench', '--no-color', '--json'];
  // Exits with 1 on a failed check; the report names the check.
  const { stdout, stderr } = await runCommand(join(ROOT, 'node_modules/.bin/llmprobe'), argv);
  try {
    return JSON.parse(stdout) as Report;
  } catch {
    throw new Error(`llmprobe wrote no report: ${stderr || stdout.slice(0, 500)}`);
  }
}

const withOutcome = (outcome: Check['outcome']): readonly Check[] =>
  report.conformance.results.filter((check) => check.outcome === outcome);

describe('llmprobe', () => {
  it('reports no failed MUST but the expected ones', () => {
    const failed = withOutcome('fail');
    const unexpected = failed.filter(({ id }) => !(id in EXPECTED_FAILURES));
    expect(unexpected.map(({ id, failures }) => ({ id, failures }))).toEqual([]);
    expect(failed.map(({ id }) => id)).toEqual(Object.keys(EXPECTED_FAILURES));
  });

  it('finds everything that is offered', () => {
    const missing = withOutcome('unsupported').filter(({ id }) => !(id in NOT_OFFERED));
    expect(missing.map(({ id, reason }) => ({ id, reason }))).toEqual([]);
  });

  it('exercises every format', () => {
    const totals = Object.fromEntries(report.conformance.bySurface.map(({ surface, total }) => [surface, total]));
    for (const [surface, min] of Object.entries(MIN_ASSERTIONS)) expect(totals[surface] ?? 0, surface).toBeGreaterThanOrEqual(min);
  });
});
