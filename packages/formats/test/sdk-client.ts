/** Official SDK client whose `fetch` returns a test response, without a socket. */
import OpenAI from 'openai';

export interface Exchange {
  readonly client: OpenAI;
  /** Bodies of the requests that the SDK sent. */
  readonly requests: Uint8Array[];
}

/** Client whose requests are answered by `respond`. */
export function sdkClient(respond: (body: Uint8Array) => Response): Exchange {
  const requests: Uint8Array[] = [];
  const client = new OpenAI({
    apiKey: 'service-test',
    baseURL: 'http://gateway.invalid/v1',
    fetch: async (_url, init) => {
      const body = new TextEncoder().encode(String(init?.body));
      requests.push(body);
      return respond(body);
    },
  });
  return { client, requests };
}

/** Event stream in chunks of a few bytes, so that chunk boundaries fall inside events and characters. */
export function eventStream(text: string): Response {
  const bytes = new TextEncoder().encode(text);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.subarray(at, at + 7));
      controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } });
}
