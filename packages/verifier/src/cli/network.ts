/** `inference-verify network`: recomputes the claims of the public attestation feed from their evidence. */

import type { AttestationRecord } from '@inference/protocol';
import { toPrintable } from '@inference/protocol';
import type { Finding } from '../record/finding.js';
import { FeedError, type FeedVerdict, openFeed, type RecordVerdict, verifyFeed } from '../record/verify-record.js';
import { type Command, type Report, readArguments, UnavailableError, UsageError } from './command.js';
import { baseAddress, downloadJson, readJson } from './download.js';

export const NOT_PROVED = [
  'Not proved by any of this: that the enclave key lives in the attested machine (whoever holds the key can relay),',
  'which program runs there and what it retains, and what the coordinator does with prompts, which it sees in plain mode.',
].join('\n');

const LABELS: Record<Finding['result'], string> = {
  reproduced: 'reproduced',
  simulated: 'simulated',
  word: "coordinator's word",
  contradicted: 'CONTRADICTED',
};

export const networkCommand: Command = {
  usage: 'network <base_url> [--feed FILE]',
  summary: 'Download the attestation feed (or read it from a file) and recompute the claims that have evidence.',
  async run(args) {
    const { positional, text } = readArguments(args, { feed: { type: 'string' } });
    const file = text('feed');
    if ((positional === null) === (file === null)) throw new UsageError('network needs an address, or --feed FILE');
    const feed = file === null ? await downloadFeed(baseAddress(positional)) : await readJson(file);
    const verdict = orUnavailable(() => verifyFeed(feed, Date.now()));
    return report(verdict, recordsOf(feed));
  },
};

export function downloadFeed(base: string): Promise<unknown> {
  return downloadJson(`${base}/v1/providers/attestation`);
}

/** Records of a feed. Throws {@link UnavailableError} for an invalid feed. */
function recordsOf(feed: unknown): readonly AttestationRecord[] {
  return orUnavailable(() => openFeed(feed).feed.providers);
}

export function orUnavailable<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof FeedError) throw new UnavailableError(error.message);
    throw error;
  }
}

function report(verdict: FeedVerdict, records: readonly AttestationRecord[]): Report {
  const verified = verdict.records.every((record) => record.consistent);
  const anchor =
    verdict.anchor === 'maker'
      ? "Certificates are verified to the manufacturer's root, which is pinned in this program."
      : 'Certificates are verified to a SIMULATED root that the network names: they prove nothing about real machines.';
  const blocks = verdict.records.map((record, index) => describe(record, records[index]));
  const count = verdict.records.length;
  const contradictions = verdict.records.filter((record) => !record.consistent).length;
  const summary =
    count === 0
      ? 'No provider is connected.'
      : `${count} provider(s); ${contradictions === 0 ? 'no claim is contradicted by its evidence' : `${contradictions} with claims that their evidence contradicts`}.`;
  return { verified, text: [anchor, ...blocks, summary, NOT_PROVED].join('\n\n'), json: verdict };
}

function describe(verdict: RecordVerdict, record: AttestationRecord | undefined): string {
  const enclave = { simulated: ', simulated enclave', claimed: ', enclave claimed', certified: ', certified' }[verdict.enclave];
  const about = record === undefined ? '' : ` (${record.chip_name}, ${record.trust_level}${enclave})`;
  const width = Math.max(...verdict.findings.map(({ claim }) => claim.length));
  const lines = verdict.findings.map(({ claim, value, result, explanation }) => {
    const claimed = typeof value === 'boolean' ? `${claim}=${value}` : claim;
    return `  ${LABELS[result].padEnd(18)}  ${claimed.padEnd(width + 6)}  ${toPrintable(explanation)}`;
  });
  const weights = (record?.weights ?? []).map(
    ({ model, sha256, source }) => `  weights of ${model}: ${sha256} (${source === 'receipt' ? 'signed in a receipt' : 'offered'})`,
  );
  return [`Provider ${verdict.providerId}${about}`, ...weights].map(toPrintable).concat(lines).join('\n');
}
