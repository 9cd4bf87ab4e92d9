/** HTTP proxy between client and coordinator that alters responses. */
import { createServer } from 'node:http';
import { addressOf, closeServer, listenLocally } from './local-server.js';

export interface TamperingProxy {
  readonly address: string;
  close(): Promise<void>;
}

/** `change` gets the path of each request and the text of its response. */
export async function startTamperingProxy(baseUrl: string, change: (path: string, text: string) => string): Promise<TamperingProxy> {
  const server = createServer(async (request, response) => {
    const path = request.url ?? '';
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => !/^(host|content-length|connection|expect)$/.test(name)),
    );
    const answer = await fetch(baseUrl + path, {
      method: request.method ?? 'GET',
      headers: headers as Record<string, string>,
      ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
    });
    const text = await answer.text();
    response.writeHead(answer.status, Object.fromEntries([...answer.headers].filter(([name]) => name !== 'content-length')));
    response.end(change(path, text));
  });
  await listenLocally(server);
  return {
    address: addressOf(server),
    close: async () => {
      await closeServer(server);
    },
  };
}

/** Alters the model list: models of other endpoints come first. */
export function otherModelsFirst(path: string, text: string): string {
  if (path !== '/v1/models') return text;
  const list = JSON.parse(text) as { data: object[] };
  const others = ['image', 'embedding'].map((type) => ({ id: `an-${type}-model`, object: 'model', metadata: { model_type: type } }));
  return JSON.stringify({ ...list, data: [...others, ...list.data] });
}
