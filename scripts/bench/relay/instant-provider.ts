/**
 * A provider for the relay bench that answers at once, over the real protocol: it registers, opens sealed requests, seals
 * its answer and signs hash and receipt. Only the model is missing. Frames are made by the agent's own code, which joins
 * tokens that are ready while a frame is on its way; with the argument `frame-per-token` each token has a frame of its own,
 * which is the most work that an answer can make.
 */
import { decodeFrame, type JobMessage, type JsonValue, parseCoordinatorMessage, type Register } from '@inference/protocol';
import { generateSealingKeyPair, RequestOpener, responseHash, sha256Hex } from '@inference/protocol/crypto';
import { WebSocket } from 'ws';
import { ResponseFrames } from '../../../apps/provider/dist/work/response-frames.js';
import { SoftwareEnclave } from '../../../test/support/software-enclave.js';
import { PLAIN_ANSWER, STREAM_TOKENS, streamTokens } from './answers.js';

const MODEL = 'bench';
const SLOTS = 1024;
const FRAME_PER_TOKEN = process.argv[3] === 'frame-per-token';
/** Credit is given back faster than these short answers use it up. */
const NEVER = new AbortController().signal;

const enclave = new SoftwareEnclave();
const sealingKey = generateSealingKeyPair();
const attestation = enclave.attestation();
const plain = { parts: [PLAIN_ANSWER], completionTokens: 8 };
const stream = { parts: streamTokens(), completionTokens: STREAM_TOKENS };
const opening = new Map<string, { job: JobMessage; opener: RequestOpener }>();

const socket = new WebSocket(`${process.argv[2]}/provider/v1/socket`, { perMessageDeflate: false });
const say = (message: object): void => socket.send(JSON.stringify(message));

socket.on('open', () => say({ type: 'hello', versions: [1], agent: { name: 'bench', version: '0' } }));
socket.on('message', (data: Buffer, isBinary: boolean) => (isBinary ? onFrame(data) : onMessage(data.toString('utf8'))));
socket.on('close', (code) => process.exit(code === 1000 ? 0 : 1));
process.on('disconnect', () => process.exit());

function onMessage(text: string): void {
  const parsed = parseCoordinatorMessage(text);
  if (parsed.kind !== 'message') return;
  const { message } = parsed;
  switch (message.type) {
    case 'welcome':
      say(registration(message.nonce, message.session_id));
      break;
    case 'registered':
      process.send?.({ ready: true });
      break;
    case 'job':
      opening.set(message.context.job_id, {
        job: message,
        opener: new RequestOpener(message.context, Buffer.from(message.enc, 'base64'), sealingKey, message.request_bytes),
      });
      break;
    case 'rejected':
      throw new Error(message.message);
    default:
      break;
  }
}

function registration(nonce: string, sessionId: string): Register {
  return {
    type: 'register',
    attestation,
    challenge: enclave.challengeAnswer(nonce, sessionId),
    key: enclave.keyStatement(sealingKey.publicKey, attestation),
    hardware: { chip_family: 'Bench', cpu_cores: 1, gpu_cores: 0, bandwidth_gbs: 0 },
    models: [{ id: MODEL, model_type: 'text', display_name: 'Bench', quantization: '8bit', context_length: 131_072 }],
    slots: SLOTS,
  };
}

function onFrame(data: Buffer): void {
  const frame = decodeFrame(data);
  const entry = opening.get(frame.jobId);
  if (entry === undefined || entry.opener.accept(frame) === null) return;
  opening.delete(frame.jobId);
  void answer(entry.job, entry.opener);
}

async function answer({ context, credit }: JobMessage, opener: RequestOpener): Promise<void> {
  const startedAt = Date.now();
  say({ type: 'job_accepted', job_id: context.job_id });
  const { parts, completionTokens } = context.stream ? stream : plain;
  const hash = responseHash();
  if (FRAME_PER_TOKEN) {
    const sealer = opener.responseSealer();
    for (const [index, part] of parts.entries()) {
      const bytes = Buffer.from(part);
      hash.update(bytes);
      socket.send(sealer.seal(bytes, index === parts.length - 1));
    }
  } else {
    const frames = new ResponseFrames(
      opener.responseSealer(),
      hash,
      { sendFrame: (bytes, sent) => socket.send(bytes, sent) },
      credit,
      NEVER,
    );
    for (const part of parts) await frames.write(part);
    await frames.finish();
  }
  const responseSha256 = hash.digestHex();
  const receipt = {
    v: 1,
    job_id: context.job_id,
    provider_id: context.provider_id,
    se_key_sha256: sha256Hex(enclave.publicKey),
    model: context.model,
    endpoint: context.endpoint,
    request_sha256: context.request_sha256,
    overrides: context.overrides,
    response_sha256: responseSha256,
    client_nonce: context.client_nonce,
    usage: { prompt_tokens: 12, completion_tokens: completionTokens, total_tokens: 12 + completionTokens },
    hidden_tokens: 0,
    finish_reason: 'stop',
    started_at: startedAt,
    completed_at: Date.now(),
  };
  say({
    type: 'job_completed',
    job_id: context.job_id,
    response_sha256: responseSha256,
    signature: enclave.signResponse(responseSha256),
    receipt: enclave.statement('receipt', receipt as JsonValue),
  });
}
