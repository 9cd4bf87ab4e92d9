import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type ChatMessage, formatFor, hashPromptPrefixes, type ParsedRequest, type TextRequest } from '../src/index.js';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const digests = (request: TextRequest, key = 'key'): string[] => hashPromptPrefixes(request, key, sha256).map(({ digest }) => digest);
const text = (length: number, letter = 'x'): string => letter.repeat(length);
const system: ChatMessage = { role: 'system', content: text(3000, 's') };
const said = (content: string): ChatMessage => ({ role: 'assistant', content, reasoning: null, toolCalls: [] });
const asked = (content: string): ChatMessage => ({ role: 'user', content });

const parsed = (body: Record<string, unknown>): ParsedRequest =>
  formatFor('/v1/chat/completions').parse(Buffer.from(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], ...body })));

function chat(messages: readonly ChatMessage[], extra: Partial<TextRequest> = {}): TextRequest {
  return { ...parsed({}).request, prompt: { type: 'chat', messages, continuesLast: false }, ...extra };
}

describe('a chain of prefixes', () => {
  test('goes on with the next turn of a conversation, and parts where prompts do', () => {
    const first = digests(chat([system, asked(text(2000))]));
    const next = digests(chat([system, asked(text(2000)), said(text(1500, 'a')), asked(text(1000, 'q'))]));
    const other = digests(chat([system, asked(text(2000, 'y'))]));
    expect(first).toHaveLength(4);
    expect(next.length).toBeGreaterThan(first.length);
    expect(next.slice(0, first.length)).toEqual(first);
    expect(other.slice(0, 2)).toEqual(first.slice(0, 2));
    expect(other[2]).not.toBe(first[2]);
    expect(other[3]).not.toBe(first[3]);
  });

  test('depends on the key, tools, thinking, texts and roles', () => {
    const messages = [system, asked(text(2000))];
    const tool = { name: 'look', description: null, parameters: { type: 'object' }, strict: false };
    const all = [
      digests(chat(messages)),
      digests(chat(messages), 'other key'),
      digests(chat(messages, { tools: [tool] })),
      digests(chat(messages, { thinking: false })),
      digests(chat([{ ...system, role: 'user' }, asked(text(2000))])),
      digests({ ...chat([]), prompt: { type: 'text', text: text(5000, 's') } }),
    ];
    const firsts = all.map(([digest]) => digest);
    expect(firsts).not.toContain(undefined);
    expect(new Set(firsts).size).toBe(all.length);
  });

  test('depends on the images, of which little is hashed', () => {
    const photo = (base64: string): ChatMessage => {
      const image = { mediaType: 'image/png', base64, detail: 'auto', field: 'x' } as const;
      return { role: 'user', content: [{ type: 'image', image }] };
    };
    const data = text(5_000_000, 'A');
    let hashed = 0;
    const counting = (text: string): string => {
      hashed += text.length;
      return sha256(text);
    };
    const [first] = hashPromptPrefixes(chat([photo(data)]), 'key', counting);
    expect(hashed).toBeLessThan(100_000);
    const others = [`${data.slice(4)}AAAB`, `B${data.slice(1)}`, data.slice(4)].map((other) => digests(chat([photo(other)]))[0]);
    expect(new Set([first?.digest, ...others]).size).toBe(4);
  });

  test('does not mistake text for the border between two messages', () => {
    const one = digests(chat([asked(`${text(10)}\nuser 2000 ${text(2000)}`)]));
    const two = digests(chat([asked(text(10)), asked(text(2000))]));
    expect(one[0]).not.toBe(two[0]);
  });

  test('is the same for every requested form of the answer', () => {
    const content = text(5000);
    const plain = parsed({ messages: [{ role: 'user', content }] });
    const streamed = parsed({
      messages: [{ role: 'user', content: [{ type: 'text', text: content }] }],
      stream: true,
      temperature: 1,
      max_tokens: 9,
    });
    expect(digests(streamed.request)).toEqual(digests(plain.request));
  });

  test('of a short prompt is empty, and of a long one has few blocks', () => {
    expect(digests(chat([asked('hello')]))).toEqual([]);
    const chain = hashPromptPrefixes(chat([asked(text(4_000_000))]), 'key', sha256);
    expect(chain.length).toBeLessThan(250);
    expect(chain.at(-1)?.characters).toBeGreaterThan(0.95 * 4_000_000);
  });
});
