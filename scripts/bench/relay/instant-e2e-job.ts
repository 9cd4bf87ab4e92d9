/** `InstantE2eJob`: end-to-end encrypted job of a bench provider. The agent's code decrypts, encrypts and signs; no model runs. */
import type { E2eReceiptDraft } from '@inference/enclave';
import type { Frame, JobCompleted, JobMessage, JsonValue } from '@inference/protocol';
import { keyIdOf, type SealingKeyPair, sha256Hex } from '@inference/protocol/crypto';
import { E2eChannel } from '../../../apps/provider/dist/jobs/channel/e2e-channel.js';
import { ReplaySet } from '../../../apps/provider/dist/jobs/channel/replay-set.js';
import type { SoftwareEnclave } from '../../../test/support/software-enclave.js';
import { emitAtPace, PLAIN_ANSWER, paceOf, STREAM_TOKENS, streamTokens, timedToken } from './answers.js';

const TOKENS = streamTokens();
const PROMPT_TOKENS = 12;
const PLAIN_TOKENS = 8;

interface E2eProvider {
  readonly enclave: SoftwareEnclave;
  readonly sealingKey: SealingKeyPair;
  readonly replays: ReplaySet;
  readonly sendFrame: (bytes: Uint8Array, sent: () => void) => void;
}

export type E2eJobMessage = JobMessage & Required<Pick<JobMessage, 'e2e'>>;

export class InstantE2eJob {
  readonly #message: E2eJobMessage;
  readonly #channel: E2eChannel;

  constructor(message: E2eJobMessage, { enclave, sealingKey, replays, sendFrame }: E2eProvider) {
    this.#message = message;
    this.#channel = new E2eChannel(
      message,
      { id: keyIdOf(sealingKey.publicKey), pair: sealingKey, openedJobIds: new ReplaySet(), openedSealedRequests: replays },
      { enclave: { signE2eResponse: async (responseSha256, draft) => signed(enclave, responseSha256, draft) }, sendFrame },
    );
  }

  /** Takes a request frame. Returns true when the request is complete and opened. Throws JobError. */
  accept(frame: Frame): boolean {
    return this.#channel.accept(frame);
  }

  /** Sends the whole answer. Resolves to the message that completes the job. */
  async answer(): Promise<JobCompleted> {
    const startedAt = Date.now();
    const { context, credit } = this.#message;
    const pace = paceOf(Buffer.from(JSON.stringify(this.#channel.terms().parsed.request)));
    const response = this.#channel.openResponse(credit, new AbortController().signal);
    let completionTokens = context.stream ? STREAM_TOKENS : PLAIN_TOKENS;
    if (pace !== null) {
      completionTokens = pace.tokens;
      await new Promise<void>((resolve) => emitAtPace(pace, () => void response.write(timedToken()), resolve));
    } else for (const part of context.stream ? TOKENS : [PLAIN_ANSWER]) await response.write(part);
    return response.finish({
      summary: {
        usage: { prompt_tokens: PROMPT_TOKENS, completion_tokens: completionTokens, total_tokens: PROMPT_TOKENS + completionTokens },
        hiddenTokens: 0,
        finishReason: 'stop',
        computation: { usedTemplate: false, sampling: null },
        decodeTps: null,
      },
      identity: { engine: 'bench', weightsSha256: null, templateSha256: null },
      startedAt,
    });
  }
}

function signed(enclave: SoftwareEnclave, responseSha256: string, draft: E2eReceiptDraft) {
  const receipt = { ...draft, provider_id: enclave.providerId, se_key_sha256: sha256Hex(enclave.publicKey) };
  return {
    signature: enclave.signResponse(responseSha256),
    sealedSignature: enclave.signResponse(draft.sealed_response_sha256),
    receipt: enclave.statement('e2e-receipt', receipt as JsonValue),
  };
}
