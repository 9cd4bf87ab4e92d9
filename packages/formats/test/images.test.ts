import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import type { RequestError } from '../src/errors/errors.js';
import { formatFor, modelTypeOf } from '../src/formats.js';
import { ImagesAnswerSchema, imagesBody } from '../src/images/answer.js';
import { imageSizeOf, pixelsOf } from '../src/images/size.js';
import { refusalOf } from './refusals.js';

const format = formatFor('/v1/images/generations');
const parse = (body: object) => format.parse(new TextEncoder().encode(JSON.stringify(body)));

const refusal = (body: object): RequestError => refusalOf(() => parse(body));

describe('an image request', () => {
  it('needs a prompt alone', () => {
    expect(parse({ prompt: 'a red square' })).toMatchObject({
      request: {
        task: 'image',
        model: null,
        prompt: 'a red square',
        count: 1,
        size: null,
        format: 'png',
        responseFormat: 'url',
        seed: null,
        quality: null,
        compression: null,
      },
      params: {
        endpoint: '/v1/images/generations',
        model: null,
        stream: false,
        maxTokens: 1,
        providerSerial: null,
        image: { count: 1, size: null, format: 'png', responseFormat: 'url' },
      },
    });
  });

  it('says all that a client may want', () => {
    const body = {
      model: 'm',
      prompt: 'x',
      n: 4,
      size: '512x768',
      response_format: 'b64_json',
      output_format: 'webp',
      output_compression: 80,
      quality: 'high',
      seed: -7,
      provider_serial: 'S1',
    };
    const { request, params } = parse(body) as ReturnType<typeof parse>;
    expect(request).toEqual({
      task: 'image',
      model: 'm',
      prompt: 'x',
      count: 4,
      size: '512x768',
      format: 'webp',
      responseFormat: 'b64_json',
      seed: -7,
      quality: 'high',
      compression: 80,
    });
    expect(params).toMatchObject({ model: 'm', providerSerial: 'S1' });
  });

  it('takes null for absent, and fields without effect, which it names', () => {
    const nothing = { model: null, n: null, size: null, response_format: null, output_format: null, quality: null, seed: null };
    expect(parse({ prompt: 'x', ...nothing, stream: false, user: 'u', background: 'opaque', moderation: 'low', style: 'vivid' })).toEqual({
      ...parse({ prompt: 'x' }),
      ignored: ['user', 'moderation', 'style'],
    });
  });

  it.each([
    ['low', 'low'],
    ['medium', 'medium'],
    ['high', 'high'],
    ['standard', 'medium'],
    ['hd', 'high'],
    ['xhigh', 'high'],
    ['max', 'high'],
    ['auto', null],
  ])('reads quality %s as %s', (quality, read) => {
    expect(parse({ prompt: 'x', quality }).request).toMatchObject({ quality: read });
  });

  it.each(['é', '😀'])('takes a prompt of 32,000 characters: %s', (character) => {
    expect(parse({ prompt: character.repeat(32_000) }).request).toMatchObject({ prompt: character.repeat(32_000) });
  });

  it.each<[string, object]>([
    ['prompt', {}],
    ['prompt', { prompt: '' }],
    ['prompt', { prompt: ' \n\t' }],
    ['prompt', { prompt: null }],
    ['prompt', { prompt: ['x'] }],
    ['prompt', { prompt: 'x'.repeat(32_001) }],
    ['prompt', { prompt: 'x'.repeat(100_000) }],
    ['prompt', { prompt: 'x\0' }],
    ['model', { prompt: 'x', model: '' }],
    ['model', { prompt: 'x', model: 7 }],
    ...[0, -1, 1.5, 5, 1000, '2', [1], Number.MAX_SAFE_INTEGER].map((n) => ['n', { prompt: 'x', n }] as [string, object]),
    ...['0x0', '-512x512', '512x-512', '0512x512', '512', '512x', 'x512', '512X512', '512×512', '99999x99999', '1.5x2', '', 'big', 512].map(
      (size) => ['size', { prompt: 'x', size }] as [string, object],
    ),
    ['response_format', { prompt: 'x', response_format: 'file' }],
    ['output_format', { prompt: 'x', output_format: 'gif' }],
    ['output_compression', { prompt: 'x', output_compression: 101 }],
    ['quality', { prompt: 'x', quality: 'best' }],
    ['seed', { prompt: 'x', seed: 0.5 }],
    ['stream', { prompt: 'x', stream: true }],
    ['provider_serial', { prompt: 'x', provider_serial: '' }],
  ])('is refused with the name of the field %s: %j', (param, body) => {
    expect(refusal(body).param).toBe(param);
  });

  it('is for image models', () => {
    expect(modelTypeOf('/v1/images/generations')).toBe('image');
  });
});

describe('the size of images', () => {
  it.each([
    [null, ['512x512', '1024x1024'], '1024x1024'],
    [null, ['512x512', '256x256'], '512x512'],
    ['auto', ['512x512', '1024x1024'], '512x512'],
    ['256x256', ['512x512', '256x256'], '256x256'],
    ['256x512', ['512x512', '256x256'], null],
    [null, [], null],
    ['auto', [], null],
  ] as const)('%s at a model of %j is %s', (requested, sizes, size) => {
    expect(imageSizeOf(requested, sizes)).toBe(size);
  });

  it('is two numbers', () => {
    expect(pixelsOf('640x480')).toEqual({ width: 640, height: 480 });
    expect(() => pixelsOf('auto')).toThrow(RangeError);
  });
});

describe('the answer with images', () => {
  const usage = { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7, images: 2 };
  const answer = Compile(ImagesAnswerSchema);

  it('names addresses', () => {
    const images = [{ url: 'https://a.example/1' }, { url: 'https://a.example/2' }];
    const body = JSON.parse(imagesBody({ created: 9 }, { images, format: 'png', size: '64x64', usage }));
    expect(body).toEqual({
      created: 9,
      data: images,
      output_format: 'png',
      size: '64x64',
      usage: { input_tokens: 7, input_tokens_details: { image_tokens: 0, text_tokens: 7 }, output_tokens: 0, total_tokens: 7 },
    });
    expect(answer.Check(body)).toBe(true);
  });

  it('holds the images', () => {
    const body = JSON.parse(imagesBody({ created: 9 }, { images: [{ base64: 'AAAA' }], format: 'webp', size: '64x64', usage }));
    expect(body.data).toEqual([{ b64_json: 'AAAA' }]);
    expect(answer.Check(body)).toBe(true);
  });

  it('has no room for words of a provider', () => {
    const body = JSON.parse(imagesBody({ created: 9 }, { images: [{ base64: 'AAAA' }], format: 'png', size: '64x64', usage }));
    expect(answer.Check({ ...body, note: 'visit my page' })).toBe(false);
    expect(answer.Check({ ...body, data: [{ b64_json: 'AAAA', revised_prompt: 'visit my page' }] })).toBe(false);
    expect(answer.Check({ ...body, usage: { ...body.usage, note: 'x' } })).toBe(false);
  });
});
