/** Images as input in chat, Responses and Messages requests: accepted shapes, and refusals that name the part. */
import { MAX_INPUT_IMAGE_BYTES, MAX_INPUT_IMAGES } from '@inference/protocol';
import { describe, expect, it } from 'vitest';
import {
  contentText,
  formatFor,
  imagesOfRequest,
  type ParsedRequest,
  type ParseOptions,
  RequestError,
  type TextEndpoint,
  textBytesOf,
} from '../src/index.js';
import { Random } from './random.js';
import { refusalOf } from './refusals.js';
import { ANIMATED, bytesOfBase64, IMAGES, LOSSLESS_WEBP, resizedPng } from './sample-images.js';

const PNG = IMAGES['image/png'];
const pngUri = `data:image/png;base64,${PNG}`;

const bytesOf = (body: object): Uint8Array => new TextEncoder().encode(JSON.stringify(body));

function parse(endpoint: TextEndpoint, body: object, options: ParseOptions = {}): ParsedRequest {
  return formatFor(endpoint).parse(bytesOf({ model: 'm', ...body }), { unknownMembers: 'refuse', ...options });
}

const refusal = (endpoint: TextEndpoint, body: object, options?: ParseOptions): RequestError =>
  refusalOf(() => parse(endpoint, body, options));

const chat = (...content: object[]) => ({ messages: [{ role: 'user', content }] });
const imageUrl = (url: string, more: object = {}) => ({ type: 'image_url', image_url: { url, ...more } });
const text = (words: string) => ({ type: 'text', text: words });
const block = (data: string, media_type = 'image/png') => ({ type: 'image', source: { type: 'base64', media_type, data } });
const messages = (...content: object[]) => ({ max_tokens: 5, messages: [{ role: 'user', content }] });

const png = { mediaType: 'image/png', base64: PNG, detail: 'auto', pixels: 6 };
const imagePart = (image: object) => ({ type: 'image', image });

describe('an image is taken', () => {
  it('between texts of a chat message, in order, with its detail', () => {
    const body = chat(text('a'), text('b'), imageUrl(pngUri, { detail: 'low' }), text('c'), imageUrl(pngUri, { detail: 'original' }));
    const { request } = parse('/v1/chat/completions', body);
    expect(request.prompt).toEqual({
      type: 'chat',
      continuesLast: false,
      messages: [
        {
          role: 'user',
          content: [
            text('a\nb'),
            imagePart({ ...png, detail: 'low', field: 'messages[0].content[2]' }),
            text('c'),
            imagePart({ ...png, detail: 'high', field: 'messages[0].content[4]' }),
          ],
        },
      ],
    });
    const bodyBytes = bytesOf({ model: 'm', ...body }).length;
    expect(textBytesOf(request, bodyBytes)).toBe(bodyBytes - 2 * PNG.length);
  });

  it('in results of tools, in several turns of each format', () => {
    const call = { id: 't', type: 'function', function: { name: 'shot', arguments: '{}' } };
    const turns = [
      ...chat(imageUrl(pngUri)).messages,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 't', content: [text('done'), imageUrl(pngUri)] },
    ];
    const fields = (request: ParsedRequest) => imagesOfRequest(request.request).map(({ field }) => field);
    expect(fields(parse('/v1/chat/completions', { messages: turns }))).toEqual(['messages[0].content[0]', 'messages[2].content[1]']);
    const input = [
      { role: 'user', content: [{ type: 'input_image', image_url: pngUri, detail: 'high' }] },
      { type: 'function_call', call_id: 'c', name: 'shot', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image', image_url: pngUri }] },
      { role: 'user', content: [{ type: 'input_file', filename: 'a.png', file_data: pngUri }] },
    ];
    expect(fields(parse('/v1/responses', { input }))).toEqual(['input[0].content[0]', 'input[2].output[0]', 'input[3].content[0]']);
    const result = { type: 'tool_result', tool_use_id: 't', content: [text('done'), block(PNG)] };
    const conversation = [
      { role: 'user', content: [block(PNG), text('What is it?')] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'shot', input: {} }] },
      { role: 'user', content: [result, text('And now?')] },
    ];
    for (const endpoint of ['/v1/messages', '/v1/messages/count_tokens'] as const) {
      const parsed = parse(endpoint, { max_tokens: 5, messages: conversation });
      expect(fields(parsed)).toEqual(['messages[0].content[0]', 'messages[2].content[0].content[1]']);
      expect(parsed.request.prompt).toMatchObject({
        messages: [
          { role: 'user', content: [imagePart(png), text('What is it?')] },
          { role: 'assistant' },
          { role: 'tool', content: [text('done'), imagePart(png)] },
          { role: 'user', content: 'And now?' },
        ],
      });
    }
  });

  it.each([...Object.entries(IMAGES), ['image/webp', LOSSLESS_WEBP]])('as %s', (mediaType, data) => {
    const url = `data:${mediaType === 'image/jpeg' ? 'image/jpg' : mediaType};base64,${data}`;
    const parsed = parse('/v1/chat/completions', chat(imageUrl(url), { type: 'file', file: { filename: 'x', file_data: data } }));
    expect(imagesOfRequest(parsed.request)).toMatchObject([{ mediaType }, { mediaType }]);
    const [message] = parsed.request.prompt.type === 'chat' ? parsed.request.prompt.messages : [];
    expect(contentText(message?.content ?? 'none')).toBe('');
  });

  it('in a data URI with the media type of another format, by its data', () => {
    const url = `data:image/jpeg;base64,${PNG}`;
    const parsed = parse('/v1/chat/completions', chat(imageUrl(url), { type: 'file', file: { filename: 'x', file_data: url } }));
    expect(imagesOfRequest(parsed.request)).toMatchObject([{ mediaType: 'image/png' }, { mediaType: 'image/png' }]);
  });

  it('at a URL, only if the caller has its bytes', () => {
    const imageAt = () => ({ mediaType: 'image/png', base64: PNG }) as const;
    const body = chat(imageUrl('https://example.com/a.png'));
    const { request } = parse('/v1/chat/completions', body, { imageAt });
    const { pixels: _, ...fetched } = png;
    expect(imagesOfRequest(request)).toEqual([{ ...fetched, field: 'messages[0].content[0]', url: 'https://example.com/a.png' }]);
    expect(textBytesOf(request, 500)).toBe(500);
    const source = { type: 'url', url: 'https://example.com/a.png' };
    expect(imagesOfRequest(parse('/v1/messages', messages({ type: 'image', source }), { imageAt }).request)).toHaveLength(1);
    const { code, param, message } = refusal('/v1/chat/completions', body);
    expect([code, param]).toEqual(['unsupported_parameter', 'messages[0].content[0]']);
    expect(message).toBe(
      'messages[0].content[0]: could not process image. Images are not fetched from URLs here. Send the image itself, in base64.',
    );
  });
});

describe('an image is refused, with its part named,', () => {
  const uri = (bytes: Uint8Array, type = 'image/png') => `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;
  const cut = (data: string) => {
    const bytes = bytesOfBase64(data);
    return bytes.subarray(0, bytes.length - 9);
  };
  const largest = Buffer.concat([bytesOfBase64(PNG), Buffer.alloc(MAX_INPUT_IMAGE_BYTES)]);
  const apng = bytesOfBase64(PNG);
  apng.write('acTL', apng.indexOf('pHYs'), 'latin1');

  it.each<[string, string, RegExp]>([
    ['without data', 'data:image/png;base64,', /could not process image\. The data is empty/],
    ['not in base64', 'data:image/png;base64,@@@@', /not valid base64/],
    ['in base64 without its padding', pngUri.replace(/=+$/, ''), /not valid base64/],
    ['in percent encoding', 'data:image/png,%89PNG', /must be of the form/],
    [
      'as SVG by its type',
      'data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=',
      /media type is not supported\. Accepted are PNG, JPEG, WebP and GIF/,
    ],
    ['as SVG by its bytes', uri(Buffer.from('<?xml version="1.0"?><svg/>')), /SVG is not supported/],
    ['as PDF', uri(Buffer.from('%PDF-1.7')), /PDF is not supported/],
    ['as TIFF', uri(Buffer.from('II*\0abcd')), /TIFF is not supported/],
    ['as HEIC', uri(Buffer.from('\0\0\0\x18ftypheic')), /HEIC is not supported/],
    ['as text', uri(Buffer.from('hello world')), /not an image of a known type/],
    ['as a truncated PNG', uri(cut(PNG)), /ends before the image is complete/],
    ['as a truncated JPEG', uri(cut(IMAGES['image/jpeg']), 'image/jpeg'), /ends before the image is complete/],
    ['as a truncated WebP', uri(cut(IMAGES['image/webp']), 'image/webp'), /ends before the image is complete/],
    ['as a truncated GIF', uri(cut(IMAGES['image/gif']), 'image/gif'), /ends before the image is complete/],
    ['as a PNG without data', uri(Buffer.concat([apng.subarray(0, 33), apng.subarray(-12)])), /The data is damaged/],
    ['of too many chunks', uri(Buffer.concat([bytesOfBase64(PNG).subarray(0, 33), Buffer.alloc(12 * 20_000)])), /The data is damaged/],
    ['as an animated PNG', uri(apng), /Animated images are not supported/],
    ['as an animated GIF', `data:image/gif;base64,${ANIMATED['image/gif']}`, /Animated images are not supported/],
    ['as an animated WebP', `data:image/webp;base64,${ANIMATED['image/webp']}`, /Animated images are not supported/],
    ['of too many bytes', uri(largest), /image exceeds the maximum of 5 MiB/],
    ['that is too wide', uri(resizedPng(8001, 1)), /image dimensions exceed the maximum of 8000 pixels/],
    ['of too many pixels', uri(resizedPng(8000, 8000)), /image dimensions exceed the maximum of 40 megapixels/],
    ['without an extent', uri(resizedPng(0, 5)), /The data is damaged/],
    ['at http', 'http://example.com/a.png', /must be a data URI with base64, or begin with https/],
    ['in a file', 'file:///etc/passwd', /must be a data URI/],
    ['in bare base64', PNG, /Its URL is not valid\. Send a data URI/],
  ])('%s', (_what, url, message) => {
    const error = refusal('/v1/chat/completions', chat(text('a'), imageUrl(url)));
    expect(error.message).toMatch(message);
    expect([error.param, ['invalid_request', 'unsupported_parameter']]).toEqual([
      'messages[0].content[1]',
      expect.arrayContaining([error.code]),
    ]);
    expect(refusal('/v1/responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }).message).toBe(
      error.message.replace('messages[0].content[1]', 'input[0].content[0]'),
    );
  });

  it.each<[string, TextEndpoint, object, string]>([
    [
      'beyond the maximum',
      '/v1/chat/completions',
      chat(...Array.from({ length: MAX_INPUT_IMAGES + 1 }, () => imageUrl(pngUri))),
      'messages[0].content[20]',
    ],
    ['as a bare string', '/v1/chat/completions', chat({ type: 'image_url', image_url: pngUri }), 'messages[0].content[0].image_url'],
    [
      'with an unknown detail',
      '/v1/chat/completions',
      chat(imageUrl(pngUri, { detail: 'max' })),
      'messages[0].content[0].image_url.detail',
    ],
    [
      'in a system message',
      '/v1/chat/completions',
      { messages: [{ role: 'system', content: [imageUrl(pngUri)] }] },
      'messages[0].content[0]',
    ],
    ['in an answer', '/v1/chat/completions', { messages: [{ role: 'assistant', content: [imageUrl(pngUri)] }] }, 'messages[0].content[0]'],
    ['as a stored file', '/v1/chat/completions', chat({ type: 'file', file: { file_id: 'f' } }), 'messages[0].content[0]'],
    [
      'as a file that is no image',
      '/v1/chat/completions',
      chat({ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } }),
      'messages[0].content[0]',
    ],
    [
      'by the id of a file',
      '/v1/responses',
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'input[0].content[0]',
    ],
    [
      'at the URL of a file',
      '/v1/responses',
      { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://x' }] }] },
      'input[0].content[0]',
    ],
    [
      'of the developer',
      '/v1/responses',
      { input: [{ role: 'developer', content: [{ type: 'input_image', image_url: pngUri }] }] },
      'input[0].content[0]',
    ],
    [
      'as a file of Messages',
      '/v1/messages',
      messages({ type: 'image', source: { type: 'file', file_id: 'f' } }),
      'messages[0].content[0]',
    ],
    ['of an unknown source', '/v1/messages', messages({ type: 'image', source: { type: 'x' } }), 'messages[0].content[0].source.type'],
    [
      'without a media type',
      '/v1/messages',
      messages({ type: 'image', source: { type: 'base64', data: PNG } }),
      'messages[0].content[0].source.media_type',
    ],
    ['of another media type', '/v1/messages', messages(block(PNG, 'image/jpeg')), 'messages[0].content[0]'],
    ['of a misnamed type', '/v1/messages', messages(block(IMAGES['image/jpeg'], 'image/jpg')), 'messages[0].content[0]'],
    [
      'in an answer of Messages',
      '/v1/messages',
      { max_tokens: 5, messages: [{ role: 'assistant', content: [block(PNG)] }] },
      'messages[0].content[0]',
    ],
    ['in the system prompt', '/v1/messages', { ...messages(text('a')), system: [block(PNG)] }, 'system[0]'],
  ])('%s', (_what, endpoint, body, param) => {
    expect(refusal(endpoint, body).param).toBe(param);
  });
});

it('mutated images are taken or refused by name, 2,000 of them', () => {
  const random = new Random(23);
  const samples = [...Object.values(IMAGES), LOSSLESS_WEBP, ...Object.values(ANIMATED)].map(bytesOfBase64);
  let accepted = 0;
  for (let round = 0; round < 2000; round++) {
    const bytes = Buffer.from(samples[random.below(samples.length)] as Buffer);
    for (let change = 0; change <= random.below(4); change++) bytes[random.below(bytes.length)] = random.below(256);
    const mutated = random.below(3) === 0 ? bytes.subarray(0, random.below(bytes.length + 1)) : bytes;
    const file_data = mutated.toString('base64');
    try {
      parse('/v1/chat/completions', chat({ type: 'file', file: { file_data } }));
      accepted++;
    } catch (error) {
      expect(error).toBeInstanceOf(RequestError);
      expect((error as RequestError).param).toMatch(/^messages\[0\]\.content\[0\]/);
    }
  }
  expect(accepted).toBeGreaterThan(100);
  expect(accepted).toBeLessThan(1900);
});
