/**
 * Checks an answer of the playground as an outsider would: the key comes from the attestation feed, the record of the feed
 * is verified by its own evidence, and hash, signature and receipt are computed over the exact bytes that came. Loaded when
 * the first answer is there, because the cryptography is large.
 */
import type { AttestationFeed } from '@inference/protocol';
import { FeedError, type ResponseVerdict, sha256Hex, verifyFeed, verifyResponse, verifyStream } from '@inference/verifier';
import type { AnswerCheck, CheckLine } from './answer-check.js';
import type { ProviderFacts } from './provider-facts.js';

export interface Evidence {
  /** What was sent, byte for byte. */
  readonly requestBody: string;
  readonly nonce: string;
  readonly model: string;
  readonly provider: ProviderFacts | null;
  /** The attestation feed as it was downloaded while the answer came. Null: it could not be. */
  readonly feed: unknown;
  readonly answer:
    | { readonly kind: 'stream'; readonly bytes: Uint8Array }
    | {
        readonly kind: 'plain';
        readonly bytes: Uint8Array;
        readonly headers: Pick<Headers, 'get'>;
        readonly images: readonly Uint8Array[];
      };
}

/** `now` in milliseconds. */
export function judgeAnswer(evidence: Evidence, now: number): AnswerCheck {
  const { provider, feed } = evidence;
  if (provider === null) return failed([{ ok: false, text: 'The answer does not say which machine gave it.' }]);
  if (feed === null) {
    return { state: 'unknown', reason: 'The attestation feed could not be downloaded, so there is no key to check the answer with.' };
  }
  const judged = judgeRecord(feed, provider, now);
  if ('state' in judged) return judged;
  const verdict = judgeBytes(evidence, judged.publicKey);
  const lines = [...judged.lines, ...verdict.checks.map(({ result, explanation }) => ({ ok: result === 'ok', text: explanation }))];
  const verified = verdict.verified && lines.every(({ ok }) => ok);
  return {
    state: verified ? 'verified' : 'failed',
    lines,
    simulated: judged.simulated,
    jobId: verdict.receipt?.job_id ?? provider.jobId,
  };
}

interface JudgedRecord {
  readonly publicKey: string;
  readonly simulated: boolean;
  readonly lines: readonly CheckLine[];
}

function judgeRecord(downloaded: unknown, provider: ProviderFacts, now: number): JudgedRecord | AnswerCheck {
  let record: AttestationFeed['providers'][number] | undefined;
  let contradicted: readonly string[];
  try {
    const all = downloaded as AttestationFeed;
    record = Array.isArray(all.providers) ? all.providers.find(({ provider_id }) => provider_id === provider.id) : undefined;
    if (record === undefined) {
      const reason = 'The machine is not in the attestation feed (any more), so there is no key to check its answer with.';
      return { state: 'unknown', reason };
    }
    const [verdict] = verifyFeed({ ...all, providers: [record] }, now).records;
    contradicted = (verdict?.findings ?? []).filter(({ result }) => result === 'contradicted').map(({ explanation }) => explanation);
  } catch (error) {
    if (error instanceof FeedError) return failed([{ ok: false, text: error.message }]);
    throw error;
  }
  const sameKey = record.se_public_key === provider.publicKey;
  return {
    publicKey: record.se_public_key,
    simulated: !record.secure_enclave,
    lines: [
      {
        ok: contradicted.length === 0,
        text:
          contradicted.length === 0
            ? "The machine's public record agrees with its own evidence."
            : `The machine's public record is contradicted: ${contradicted.join(' ')}`,
      },
      {
        ok: sameKey,
        text: sameKey
          ? 'The key of the public record is the one that the answer names.'
          : 'The answer names another key than the public record of the machine.',
      },
    ],
  };
}

function judgeBytes({ requestBody, nonce, model, provider, answer }: Evidence, publicKey: string): ResponseVerdict {
  const expected = { requestSha256: sha256Hex(new TextEncoder().encode(requestBody)), nonce, model };
  if (answer.kind === 'stream') {
    const job = provider?.jobId ?? null;
    return verifyStream(answer.bytes, { publicKey, expected: { ...expected, ...(job === null ? {} : { jobId: job }) } });
  }
  const { bytes: body, headers, images } = answer;
  return verifyResponse({ body, headers, publicKey, expected: { ...expected, images } });
}

function failed(lines: readonly CheckLine[]): AnswerCheck {
  return { state: 'failed', lines, simulated: false, jobId: null };
}
