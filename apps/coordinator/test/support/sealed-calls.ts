/** Minimal end-to-end client for tests: seals and posts requests, and opens the answers. */
import {
  concatBytes,
  E2E_REQUEST_CONTENT_TYPE,
  type E2eAnswerHead,
  type E2eRecipient,
  type E2eRequestTerms,
  fromUtf8,
  parseE2eAnswerHead,
  parseE2eProof,
  type SealedE2eRequest,
  sealE2eRequest,
  utf8,
} from '@inference/protocol';
import { keyIdOf, nodeE2eCrypto } from '@inference/protocol/crypto';
import { type Harness, MODEL } from './harness.js';
import type { ScriptedProvider } from './scripted-provider.js';

/** Seals a chat request to these providers' current keys. */
export function seal(
  providers: readonly ScriptedProvider[],
  terms: Partial<E2eRequestTerms> = {},
  body: Uint8Array = utf8('{"messages":[{"role":"user","content":"hi"}]}'),
): SealedE2eRequest {
  const now = Date.now();
  const context = {
    endpoint: '/v1/chat/completions',
    model: MODEL,
    stream: false,
    max_tokens: 100,
    issued_at: now,
    expires_at: now + 60_000,
    ...terms,
  } as const;
  return sealE2eRequest(nodeE2eCrypto, { context, recipients: providers.map(recipientOf), body });
}

export function recipientOf({ providerId, sealingKey: { publicKey } }: ScriptedProvider): E2eRecipient {
  return { provider_id: providerId, key_id: keyIdOf(publicKey), x25519: publicKey };
}

export function postSealed(
  { url, apiKey }: Pick<Harness, 'url' | 'apiKey'>,
  bytes: Uint8Array,
  init: { readonly headers?: Record<string, string>; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(`${url}/v1/e2e/requests`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': E2E_REQUEST_CONTENT_TYPE, ...init.headers },
    body: new Uint8Array(bytes),
    ...(init.signal === undefined ? {} : { signal: init.signal }),
  });
}

export interface OpenedAnswer {
  readonly recipient: number;
  readonly head: E2eAnswerHead;
  readonly text: string;
  readonly images: readonly Uint8Array[];
  readonly proof: ReturnType<typeof parseE2eProof>;
}

/** Opens a complete answer. Throws E2eError if the answer is incomplete or invalid. */
export async function openAnswer(sealed: SealedE2eRequest, response: Response): Promise<OpenedAnswer> {
  const recipient = Number(response.headers.get('inference-e2e-recipient'));
  const opener = sealed.candidates[recipient]?.answerOpener();
  if (opener === undefined) throw new Error(`no candidate ${recipient}`);
  const { parts } = opener.push(new Uint8Array(await response.arrayBuffer()));
  opener.end();
  const ofKind = (kind: string) => parts.filter((part) => part.kind === kind).map(({ bytes }) => bytes);
  const [head] = ofKind('head');
  const [proof] = ofKind('proof');
  if (head === undefined || proof === undefined) throw new Error('the answer has no head or no proof');
  return {
    recipient,
    head: parseE2eAnswerHead(head),
    text: fromUtf8(concatBytes(...ofKind('body'))),
    images: ofKind('image'),
    proof: parseE2eProof(proof),
  };
}
