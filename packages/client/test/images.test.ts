/** Images of requests: fetched by the client, and sealed with the request. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toBase64 } from '@inference/protocol';
import { describe, expect, test } from 'vitest';
import { createVerifiedFetch, ImageError, imageFromBytes, imageFromFile, type VerifiedFetchOptions, verdictOf } from '../src/node.js';
import { hello } from './answers.js';
import { BASE_URL, MODEL, NOW, POLICY, ScriptedNetwork } from './scripted-network.js';

/** A PNG of one red pixel. */
const PNG = new Uint8Array(
  Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC', 'base64'),
);
const BASE64 = toBase64(PNG);
const DATA_URI = `data:image/png;base64,${BASE64}`;
const ADDRESS = 'https://pictures.invalid/cat.png?token=secret';

const CHAT = {
  messages: [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: ADDRESS } },
      ],
    },
  ],
};
const RESPONSES = { input: [{ role: 'user', content: [{ type: 'input_image', image_url: ADDRESS, detail: 'low' }] }] };
const MESSAGES = {
  max_tokens: 8,
  messages: [
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: { type: 'image', source: { type: 'url', url: ADDRESS } } }],
    },
    {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'image', source: { type: 'url', url: ADDRESS } }] }],
    },
  ],
};

interface Fetched {
  readonly url: string;
  readonly init: RequestInit;
}

function setup(answer: (url: string) => Response | Promise<Response>, options: Partial<VerifiedFetchOptions> = {}) {
  const network = new ScriptedNetwork(hello, 1);
  const fetched: Fetched[] = [];
  const fetchImage = async (url: string, init: RequestInit): Promise<Response> => {
    fetched.push({ url, init });
    return await answer(url);
  };
  const fetch = createVerifiedFetch({ baseURL: BASE_URL, policy: POLICY, fetch: network.fetch, fetchImage, now: () => NOW, ...options });
  const post = (path: string, body: object): Promise<Response> =>
    fetch(BASE_URL + path, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-test' },
      body: JSON.stringify({ model: MODEL, ...body }),
    });
  return { network, fetched, post };
}

const png = (): Response => new Response(PNG);

describe('images by address', () => {
  test.each([
    [
      '/v1/chat/completions',
      CHAT,
      (body: typeof CHAT) => body.messages[0]?.content[1],
      { type: 'image_url', image_url: { url: DATA_URI } },
    ],
    [
      '/v1/responses',
      RESPONSES,
      (body: typeof RESPONSES) => body.input[0]?.content[0],
      { type: 'input_image', image_url: DATA_URI, detail: 'low' },
    ],
    [
      '/v1/messages',
      MESSAGES,
      (body: typeof MESSAGES) => body.messages,
      [
        MESSAGES.messages[0],
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'toolu_1',
              content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: BASE64 } }],
            },
          ],
        },
      ],
    ],
  ])('are sealed as data into a request to %s, which the receipt covers', async (path, body, partOf, expected) => {
    const { network, fetched, post } = setup(png);
    const response = await post(path, body);
    expect(response.status).toBe(200);
    await response.text();
    expect(verdictOf(response)).toMatchObject({ state: 'verified' });
    const sent = JSON.parse(new TextDecoder().decode(network.opened[0]?.body)) as never;
    expect(partOf(sent)).toEqual(expected);
    expect(network.opened[0]?.context).toMatchObject({ input_images: 1, input_image_bytes: BASE64.length });
    expect(fetched).toHaveLength(1);
    expect(fetched[0]).toMatchObject({ url: ADDRESS, init: { credentials: 'omit', redirect: 'manual' } });
    expect(JSON.stringify(fetched[0]?.init.headers)).not.toContain('sk-test');
    expect(network.received.some(({ url }) => url.includes('pictures.invalid'))).toBe(false);
  });

  test('a request without addresses is sealed to the byte', async () => {
    const { network, post } = setup(png);
    await post('/v1/chat/completions', { messages: [{ role: 'user', content: `"image_url" of ${ADDRESS}` }], seed: 1 });
    const text = JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: `"image_url" of ${ADDRESS}` }], seed: 1 });
    expect(
      createHash('sha256')
        .update(network.opened[0]?.body ?? '')
        .digest('hex'),
    ).toBe(createHash('sha256').update(text).digest('hex'));
  });

  const redirectTo = (location: string) => () => new Response(null, { status: 302, headers: { location } });

  test('a redirect is followed to https alone', async () => {
    const followed = setup((url) => (url === ADDRESS ? redirectTo('/final.png')() : png()));
    expect((await followed.post('/v1/chat/completions', CHAT)).status).toBe(200);
    expect(followed.fetched.map(({ url }) => url)).toEqual([ADDRESS, 'https://pictures.invalid/final.png']);
  });

  const large = (): Response => new Response(new Uint8Array(5 * 1024 * 1024 + 1).fill(0xff));
  test.each<[string, () => Response, string, Partial<VerifiedFetchOptions>?]>([
    ['a page instead of an image', () => new Response('<html>'), 'pictures.invalid did not answer with an image: The data is not a PNG'],
    ['too many bytes', large, 'The image exceeds the maximum of 5 MiB'],
    ['an error', () => new Response('', { status: 403 }), 'pictures.invalid answered 403 instead of an image'],
    ['a redirect to http', redirectTo('http://10.0.0.1/'), 'Its URL must begin with https'],
    ['endless redirects', redirectTo(ADDRESS), 'redirects more than 3 times'],
    [
      'no connection',
      () => {
        throw new TypeError('fetch failed');
      },
      'pictures.invalid could not be reached',
    ],
    ['addresses that are switched off', png, 'Images are not fetched from URLs here.', { fetchImage: null }],
  ])('%s is a 400 that names the part, and nothing is sent', async (_name, answer, message, options) => {
    const { network, post } = setup(answer, options);
    const response = await post('/v1/chat/completions', CHAT);
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { param: string; message: string } };
    expect(error).toMatchObject({
      param: 'messages[0].content[1]',
      message: expect.stringContaining('messages[0].content[1]: could not process image. '),
    });
    expect(error.message).toContain(message);
    expect(error.message).not.toContain('secret');
    expect(network.sealedRequests).toEqual([]);
  });

  test('http is refused, and so are more than 20 addresses', async () => {
    const { fetched, post } = setup(png);
    const ask = (urls: readonly string[]) => {
      const content = urls.map((url) => ({ type: 'image_url', image_url: { url } }));
      return post('/v1/chat/completions', { messages: [{ role: 'user', content }] });
    };
    expect(await (await ask(['http://10.0.0.1/a.png'])).text()).toContain('Its URL must begin with https');
    const many = Array.from({ length: 21 }, (_, index) => `https://pictures.invalid/${index}`);
    expect(await (await ask(many)).text()).toContain('messages[0].content[20]: could not process image. A request has at most 20 images');
    const repeated = Array.from({ length: 21 }, () => ADDRESS);
    expect(await (await ask(repeated)).text()).toContain('A request has at most 20 images');
    expect(fetched).toEqual([]);
  });
});

describe('local images', () => {
  test.each([
    ['PNG', PNG, 'image/png'],
    ['JPEG', Uint8Array.of(0xff, 0xd8, 0xff, 0xe0), 'image/jpeg'],
    ['GIF', new Uint8Array(Buffer.from('GIF89a')), 'image/gif'],
    ['WebP', new Uint8Array(Buffer.from('RIFF\x1a\0\0\0WEBPVP8L')), 'image/webp'],
  ])('%s has the media type of its content', (_name, bytes, mediaType) => {
    expect(imageFromBytes(bytes)).toEqual({ mediaType, base64: toBase64(bytes), dataUri: `data:${mediaType};base64,${toBase64(bytes)}` });
  });

  test('a file with any name is read, unless the file is too large or of another type', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'inference-client-images-'));
    const write = (name: string, bytes: Uint8Array): string => {
      writeFileSync(join(folder, name), bytes);
      return join(folder, name);
    };
    try {
      expect(await imageFromFile(write('cat.jpg', PNG))).toMatchObject({ dataUri: DATA_URI });
      await expect(imageFromFile(write('large.png', new Uint8Array(5 * 1024 * 1024 + 1)))).rejects.toThrow('at most 5242880 bytes');
      await expect(imageFromFile(write('cat.svg', new Uint8Array(Buffer.from('<svg/>'))))).rejects.toThrow(ImageError);
      await expect(imageFromFile(join(folder, 'none.png'))).rejects.toMatchObject({ code: 'ENOENT' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
