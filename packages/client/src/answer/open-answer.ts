/** Opens and verifies a sealed answer, and returns a response as in plain mode. */
import {
  BodyCheck,
  concatBytes,
  E2E_RESPONSE_CONTENT_TYPE,
  type E2eAnswerHead,
  type E2eAnswerOpener,
  type E2eCrypto,
  E2eError,
  type E2ePart,
  fromBase64,
  MAX_PLAIN_RESPONSE_BYTES,
  parseE2eAnswerHead,
  type SealedE2eRequest,
  StreamCheck,
  toBase64,
  toBase64Url,
  toHex,
  UsageReader,
  utf8,
} from '@inference/protocol';
import { imagesIn } from '@inference/verifier';
import type { VerifiedProvider } from '../network/verified-provider.js';
import { E2ERefused } from '../refusal.js';
import type { SealableRequest } from '../request/sealable-request.js';
import { type E2eVerdict, setVerdict, VerdictCell } from '../verdict.js';
import { OpenedParts } from './open-parts.js';
import { TerminalEventGate } from './terminal-event.js';
import { type VerifiedProof, verifyProof } from './verify-proof.js';

const JOB_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const JSON_TYPE = /^application\/json(?:; charset=utf-8)?$/;
const EVENT_STREAM_TYPE = /^text\/event-stream(?:; charset=utf-8)?$/;
/** Headers of the sealed head that callers see. The client sets all others. */
const PASSED_HEADERS = /^(?:x-should-retry|x-inference-ignored|retry-after)$/;

export interface AnswerToOpen {
  readonly crypto: E2eCrypto;
  /** The coordinator's response, with status and headers not checked yet. */
  readonly response: Response;
  readonly request: SealableRequest;
  readonly sealed: SealedE2eRequest;
  /** In the order of the recipients. */
  readonly providers: readonly VerifiedProvider[];
  readonly signal: AbortSignal;
  /**
   * Compares the provider's log checkpoint with the log's tree that the request names. Rejects with {@link E2ERefused}, or with the
   * error of a failed download.
   */
  readonly compareCheckpoint: (note: string) => Promise<void>;
  readonly onFinal: (verdict: E2eVerdict) => void;
}

/**
 * Opens an answer. A plain answer is returned after its verification. A stream is returned at once, and ends after its verification.
 *
 * @throws {E2ERefused} After the start of a stream, the stream ends with this error instead.
 */
export async function openAnswer(input: AnswerToOpen): Promise<Response> {
  const { response, sealed } = input;
  const origin = originOf(input);
  const candidate = sealed.candidates[origin.index];
  if (candidate === undefined) throw new E2ERefused('downgraded', 'The answer names no candidate of this request.');
  const opener = candidate.answerOpener();
  const parts = new OpenedParts(response.body, opener);
  const first = await parts.next();
  if (first.done) throw new E2ERefused('truncated', 'The answer has no head.');
  const answer = new AnswerReader(input, origin, headOf(first.value, input.request), opener);
  return answer.isStream ? streamAnswer(parts, answer, input) : collectAnswer(parts, answer, input);
}

interface Origin {
  /** Position among the recipients of the request, which are its candidates. */
  readonly index: number;
  readonly provider: VerifiedProvider;
  readonly jobId: string;
}

function originOf({ response, providers }: AnswerToOpen): Origin {
  const [contentType = ''] = (response.headers.get('content-type') ?? '').split(';');
  if (response.status !== 200 || contentType !== E2E_RESPONSE_CONTENT_TYPE) {
    throw new E2ERefused('downgraded', `The answer is not sealed (status ${response.status}, ${contentType || 'no content type'}).`);
  }
  const text = response.headers.get('inference-e2e-recipient') ?? '';
  // A request has at most 8 candidates (`MAX_E2E_RECIPIENTS`).
  const provider = /^[0-7]$/.test(text) ? providers[Number(text)] : undefined;
  if (provider === undefined) throw new E2ERefused('downgraded', 'The answer names no candidate of this request.');
  const jobId = response.headers.get('x-inference-job-id') ?? '';
  if (!JOB_ID.test(jobId)) throw new E2ERefused('downgraded', 'The answer names no job.');
  return { index: Number(text), provider, jobId };
}

/** Throws {@link E2ERefused} unless status and content type are those of an answer to the request, or of an error. */
function headOf(part: E2ePart, { stream }: AnswerToOpen['request']): E2eAnswerHead {
  try {
    const head = parseE2eAnswerHead(part.bytes);
    const isError = head.status >= 400;
    if (head.status !== 200 && !isError) throw new E2ERefused('bad_proof', `An answer has no status ${head.status}.`);
    const expected = stream && !isError ? EVENT_STREAM_TYPE : JSON_TYPE;
    if (!expected.test(head.content_type)) throw new E2ERefused('bad_proof', 'The answer has another content type than its request.');
    return head;
  } catch (error) {
    if (error instanceof E2eError) throw new E2ERefused('bad_proof', 'The head of the answer is not valid.', null, { cause: error });
    throw error;
  }
}

/** Hashes and counts the content of one answer, and verifies its proof. */
class AnswerReader {
  readonly head: E2eAnswerHead;
  readonly origin: Origin;
  readonly isStream: boolean;
  readonly #input: AnswerToOpen;
  readonly #opener: E2eAnswerOpener;
  readonly #hash: ReturnType<E2eCrypto['createSha256']>;
  readonly #usage: UsageReader;
  /** Null if the answer is not a stream. */
  readonly #streamCheck: StreamCheck | null;
  /** Null if the answer is a stream, or an error response. */
  readonly #bodyCheck: BodyCheck | null;
  readonly #imageHashes: Uint8Array[] = [];
  #responseBytes = 0;
  #proof: Uint8Array | null = null;
  /** Comparison of the provider's log checkpoint. Runs while the answer arrives; `verify` awaits the result. */
  readonly #comparison: Promise<void>;

  constructor(input: AnswerToOpen, origin: Origin, head: E2eAnswerHead, opener: E2eAnswerOpener) {
    this.#input = input;
    this.#opener = opener;
    this.head = head;
    this.origin = origin;
    this.isStream = EVENT_STREAM_TYPE.test(head.content_type);
    this.#hash = input.crypto.createSha256();
    this.#usage = new UsageReader(input.request.endpoint, this.isStream);
    this.#streamCheck = this.isStream ? new StreamCheck(input.request.answer.terminalEvents) : null;
    this.#bodyCheck = this.isStream || head.status !== 200 ? null : new BodyCheck(input.request.answer.bodyMember);
    this.#comparison = head.log_checkpoint === undefined ? Promise.resolve() : input.compareCheckpoint(head.log_checkpoint);
    // `verify` reports the rejection, unless the answer fails before.
    this.#comparison.catch(() => {});
  }

  /** Checks, hashes and counts a part. Returns the bytes of a body part; null for other parts. Throws {@link E2ERefused}. */
  take({ kind, bytes }: E2ePart): Uint8Array | null {
    if (kind === 'proof') {
      this.#proof = bytes;
      return null;
    }
    this.#responseBytes += bytes.length;
    if (kind === 'image') {
      this.#imageHashes.push(this.#input.crypto.sha256(bytes));
      return null;
    }
    if (this.#streamCheck === null) this.#usage.push(bytes);
    else if (!this.#streamCheck.accepts(bytes, (part) => this.#usage.push(part))) {
      throw new E2ERefused('bad_proof', 'The stream contains a line that its format does not allow, or continues after its end.');
    }
    if (this.#bodyCheck?.accepts(bytes) === false) throw new E2ERefused('bad_proof', 'The body is not an answer of its format.');
    this.#hash.update(bytes);
    return bytes;
  }

  /**
   * Call after the last part. Verifies the proof and the provider's log checkpoint.
   *
   * @param body The body of a plain answer; null for a stream.
   * @throws {E2ERefused}
   */
  async verify(body: Uint8Array | null): Promise<VerifiedProof> {
    const verified = this.#verifyProof(body);
    if (this.#streamCheck?.isComplete === false)
      throw new E2ERefused('truncated', 'The stream ends within an event, or before its last one.');
    if (this.#bodyCheck?.isComplete === false) throw new E2ERefused('truncated', 'The body ends within its JSON text.');
    await this.#comparison;
    return verified;
  }

  #verifyProof(body: Uint8Array | null): VerifiedProof {
    const { sealedSha256 } = this.#opener;
    if (this.#proof === null || sealedSha256 === null) throw new E2ERefused('truncated', 'The answer ends without its proof.');
    const { crypto, sealed, request } = this.#input;
    const candidate = sealed.candidates[this.origin.index];
    if (candidate === undefined) throw new E2ERefused('downgraded', 'The answer names no candidate of this request.');
    const hash = this.#hash.digest();
    return verifyProof(this.#proof, {
      crypto,
      sealed,
      candidate,
      provider: this.origin.provider,
      jobId: this.origin.jobId,
      head: this.head,
      requestHash: crypto.sha256(request.body),
      responseHash: { bytes: hash, hex: toHex(hash) },
      imageHashes: this.#imageHashes.length > 0 || body === null ? this.#imageHashes : this.#hashesOfImagesIn(body),
      responseBytes: this.#responseBytes,
      sealedSha256,
      usage: this.#usage.end(),
    });
  }

  /** Returns the hashes of the images in base64 inside the body of an image request's answer. */
  #hashesOfImagesIn(body: Uint8Array): readonly Uint8Array[] {
    const { crypto, request } = this.#input;
    if (request.images === null || this.head.status !== 200) return [];
    return (imagesIn(body)?.held ?? []).map((image) => crypto.sha256(image));
  }
}

async function collectAnswer(parts: OpenedParts, answer: AnswerReader, input: AnswerToOpen): Promise<Response> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const part of parts) {
    const piece = answer.take(part);
    if (piece === null) continue;
    length += piece.length;
    if (length > MAX_PLAIN_RESPONSE_BYTES) throw new E2ERefused('bad_proof', `The answer has over ${MAX_PLAIN_RESPONSE_BYTES} bytes.`);
    pieces.push(piece);
  }
  const body = concatBytes(...pieces);
  const verified = await answer.verify(body);
  const headers = { ...headersOf(answer, 'verified'), ...signatureHeaders(verified) };
  const response = new Response(body, { status: answer.head.status, headers });
  return setVerdict(response, new VerdictCell(verifiedVerdict(answer, verified), input.onFinal));
}

const CANCELLED = 'The caller cancelled the answer.';

/** Passes a stream on. Reads only when the caller does, so that a slow caller slows the provider down. */
function streamAnswer(parts: OpenedParts, answer: AnswerReader, { request, signal, onFinal }: AnswerToOpen): Response {
  const { provider, jobId } = answer.origin;
  const cell = new VerdictCell({ state: 'pending', provider, jobId }, onFinal);
  const gate = new TerminalEventGate(request.answer.terminalEvents);
  const refuse = (error: unknown, message: string): void => {
    const refusal = error instanceof E2ERefused ? error : new E2ERefused('truncated', message, null, { cause: error });
    cell.settle({ state: 'refused', refusal });
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // As in `fetch`, an abort also ends a stream that nobody reads (Fetch Standard, abort a fetch() call).
        const abort = (): void => {
          refuse(signal.reason, CANCELLED);
          controller.error(signal.reason);
          void parts.return();
        };
        signal.addEventListener('abort', abort, { once: true });
      },
      async pull(controller) {
        try {
          for (;;) {
            const { done, value } = await parts.next();
            if (done) break;
            const piece = answer.take(value);
            const passed = piece === null ? null : gate.push(piece);
            if (passed === null || passed.length === 0) continue;
            controller.enqueue(passed);
            return;
          }
          const verified = await answer.verify(null);
          controller.enqueue(concatBytes(gate.release(), utf8(endOfStream(request, verified))));
          cell.settle(verifiedVerdict(answer, verified));
          controller.close();
        } catch (error) {
          // Other errors come from the comparison of the log, such as a failed download.
          refuse(error, signal.aborted ? CANCELLED : 'The answer could not be verified.');
          controller.error(error);
          void parts.return();
        }
      },
      async cancel(reason) {
        refuse(reason, CANCELLED);
        await parts.return();
      },
    },
    { highWaterMark: 0 },
  );
  return setVerdict(new Response(body, { status: answer.head.status, headers: headersOf(answer, 'pending') }), cell);
}

/** Returns the signature as a comment, which every SDK ignores, and the format's terminator. */
function endOfStream({ answer, model }: SealableRequest, { proof }: VerifiedProof): string {
  return answer.signatureEvent({ responseId: '', created: 0, model }, signedParts(proof), 'comment');
}

function signedParts(proof: VerifiedProof['proof']) {
  return {
    signature: proof.se_signature,
    responseSha256: proof.response_hash,
    receipt: toBase64Url(fromBase64(proof.receipt.payload)),
    receiptSignature: proof.receipt.signature,
  };
}

function verifiedVerdict({ origin: { provider, jobId } }: AnswerReader, { receipt }: VerifiedProof): E2eVerdict {
  return { state: 'verified', provider, jobId, receipt };
}

/** Builds the headers of plain mode, from the verified record and head. `x-inference-e2e` is `pending` for a stream. */
function headersOf({ head, origin: { provider, jobId } }: AnswerReader, state: 'verified' | 'pending'): Record<string, string> {
  const passed = Object.entries(head.headers ?? {}).filter(([name]) => PASSED_HEADERS.test(name));
  return {
    ...Object.fromEntries(passed),
    'content-type': head.content_type,
    'x-inference-e2e': state,
    'x-inference-job-id': jobId,
    'x-provider-id': provider.providerId,
    'x-provider-chip': headerText(provider.chipName),
    'x-provider-model': headerText(provider.hardwareModel),
    'x-provider-serial': headerText(provider.serialNumber),
    'x-attestation-se-public-key': toBase64(provider.enclaveKey),
  };
}

function signatureHeaders({ proof }: VerifiedProof): Record<string, string> {
  const { signature, responseSha256, receipt, receiptSignature } = signedParts(proof);
  return {
    'x-se-signature': signature,
    'x-response-hash': responseSha256,
    'x-inference-receipt': receipt,
    'x-inference-receipt-signature': receiptSignature,
  };
}

/** Converts a provider's text to a header value: visible ASCII, trimmed (RFC 9110 section 5.5). */
function headerText(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').trim();
}
