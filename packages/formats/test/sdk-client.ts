/** The official SDK in front of a response made here, without a socket. */
import OpenAI from 'openai';

export interface Exchange {
  readonly client: OpenAI;
  /** Bodies of the requests that the SDK made. */
  readonly requests: Uint8Array[];
}

/** A client whose every request gets what `respond` makes of its body. */
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

/** An event stream that arrives in chunks of a few bytes, so that events and characters are cut anywhere. */
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
