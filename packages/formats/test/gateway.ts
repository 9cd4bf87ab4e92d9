/** Simulates coordinator and provider in one function, so that SDKs parse the real response bytes. */
import { RequestError } from '../src/errors/errors.js';
import type { ParsedRequest } from '../src/format.js';
import { formatFor, type TextEndpoint } from '../src/formats.js';
import type { OutputEvent } from '../src/output-event.js';
import { SSE_COMMENT } from '../src/sse.js';
import { eventStream } from './sdk-client.js';

export const signed = { signature: 'MEUCIQ==', responseSha256: 'ab'.repeat(32), receipt: 'eyJ2IjoxfQ', receiptSignature: 'MEQCIA==' };

export interface Gateway {
  readonly fetch: (url: unknown, init?: { readonly body?: unknown }) => Promise<Response>;
  /** Received requests, in order. */
  readonly requests: ParsedRequest[];
}

/** Answers every request with the output. `end` replaces the signature at the end of a stream. */
export function gateway(output: readonly OutputEvent[], end?: (parsed: ParsedRequest) => string): Gateway {
  const requests: ParsedRequest[] = [];
  const fetch = async (url: unknown, init?: { readonly body?: unknown }) => {
    const address = typeof url === 'object' && url !== null && 'url' in url ? url.url : url;
    const format = formatFor(new URL(String(address)).pathname as TextEndpoint);
    try {
      const parsed = format.parse(new TextEncoder().encode(String(init?.body)));
      requests.push(parsed);
      return answer(parsed, output, end);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const { status, headers, body } = format.error(error, 'req_1');
      return new Response(body, { status, headers });
    }
  };
  return { fetch, requests };
}

export function responseMetadataOf({ answer: { idPrefix }, params }: ParsedRequest) {
  return { responseId: `${idPrefix}5f0c`, created: 1_790_000_000, model: params.model };
}

function answer(parsed: ParsedRequest, output: readonly OutputEvent[], end?: (parsed: ParsedRequest) => string): Response {
  const responseMetadata = responseMetadataOf(parsed);
  if (parsed.params.stream) {
    const renderer = parsed.answer.stream(responseMetadata);
    const parts = output.map((event) => renderer.render(event));
    const ending = end?.(parsed) ?? parsed.answer.signatureEvent(responseMetadata, signed);
    return eventStream(SSE_COMMENT + parts.join(SSE_COMMENT) + ending);
  }
  const renderer = parsed.answer.plain(responseMetadata);
  renderer.add(...output);
  return new Response(renderer.body(), { headers: { 'content-type': 'application/json' } });
}

/** Parses the events of a stream. */
export function eventsOf(stream: string): { readonly event: string | null; readonly data: string }[] {
  return stream
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => {
      const lines = block.split('\n');
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
      return { event: field('event'), data: field('data') ?? '' };
    });
}
