import { describe, expect, it } from 'vitest';
import { CONVERSATION_KEY } from '../../src/api/tab-storage.js';
import {
  type Answer,
  type ConversationEvent,
  chatBody,
  isBusy,
  newAnswer,
  reduceConversation,
  type Turn,
} from '../../src/pages/playground/chat/conversation.js';
import { EMPTY_PARAMETERS } from '../../src/pages/playground/chat/parameters.js';
import { loadConversation, storeConversation } from '../../src/pages/playground/chat/stored-conversation.js';

/** Question `q-<id>` and its answers, one per model. */
function asked(turns: readonly Turn[], id: string, models: readonly string[] = ['m'], before = turns.length): readonly Turn[] {
  const columns = models.map((model) => ({ versions: [newAnswer(`${id}-${model}`, model)], shown: 0 }));
  return reduceConversation(turns, {
    type: 'asked',
    before,
    question: { id: `q-${id}`, role: 'user', text: `ask ${id}` },
    reply: { id: `r-${id}`, role: 'assistant', columns },
  });
}

function ended(turns: readonly Turn[], answerId: string, text: string, state: Answer['state'] = 'complete'): readonly Turn[] {
  const events: ConversationEvent[] = [
    { type: 'appended', answerId, delta: text },
    { type: 'changed', answerId, changes: { state } },
  ];
  return events.reduce(reduceConversation, turns);
}

function messagesOf(turns: readonly Turn[], column = 0): unknown {
  const body = JSON.parse(chatBody({ model: 'm', system: '', turns, column, parameters: {} })) as { messages: unknown };
  return body.messages;
}

describe('a conversation', () => {
  it('grows, ends, and sends only completed responses to the model', () => {
    let turns = asked([], 'a');
    expect(isBusy(turns)).toBe(true);
    turns = reduceConversation(turns, { type: 'appended', answerId: 'a-m', delta: 'un' });
    expect(turns[1]).toMatchObject({ columns: [{ versions: [{ text: 'un', state: 'streaming' }] }] });
    turns = ended(turns, 'a-m', 'o');
    expect(isBusy(turns)).toBe(false);
    turns = asked(ended(asked(turns, 'b'), 'b-m', 'do', 'failed'), 'c');
    expect(JSON.parse(chatBody({ model: 'm', system: ' Be brief. ', turns, column: 0, parameters: { seed: 7 } }))).toEqual({
      model: 'm',
      messages: [
        { role: 'system', content: ' Be brief. ' },
        { role: 'user', content: 'ask a' },
        { role: 'assistant', content: 'uno' },
        { role: 'user', content: 'ask b' },
        { role: 'user', content: 'ask c' },
      ],
      seed: 7,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(reduceConversation(turns, { type: 'cleared' })).toEqual([]);
  });

  it('retains versions of a response, sends the shown version, and drops failed versions', () => {
    let turns = ended(asked([], 'a'), 'a-m', 'one');
    const again = (id: string): void => {
      turns = reduceConversation(turns, { type: 'regenerated', id: 'r-a', column: 0, answer: newAnswer(id, 'm') });
    };
    again('second');
    turns = ended(turns, 'second', 'two', 'failed');
    again('third');
    turns = ended(turns, 'third', 'three');
    expect(turns[1]).toMatchObject({ columns: [{ versions: [{ text: 'one' }, { text: 'three' }], shown: 1 }] });
    expect(messagesOf(turns)).toEqual([
      { role: 'user', content: 'ask a' },
      { role: 'assistant', content: 'three' },
    ]);
    turns = reduceConversation(turns, { type: 'shown', id: 'r-a', column: 0, version: 0 });
    expect(messagesOf(turns)).toContainEqual({ role: 'assistant', content: 'one' });
    expect(reduceConversation(turns, { type: 'shown', id: 'r-a', column: 0, version: 2 })).toEqual(turns);
  });

  it('drops later messages when an earlier one is sent again, and deletes single messages', () => {
    const turns = ended(asked(ended(asked([], 'a'), 'a-m', 'one'), 'b'), 'b-m', 'two');
    expect(asked(turns, 'c', ['m'], 0).map(({ id }) => id)).toEqual(['q-c', 'r-c']);
    expect(reduceConversation(turns, { type: 'deleted', id: 'r-a' }).map(({ id }) => id)).toEqual(['q-a', 'q-b', 'r-b']);
  });

  it('sends images before the text, with each later question too', () => {
    const image = { name: 'a.png', dataUri: 'data:image/png;base64,AA==' };
    const part = { type: 'image_url', image_url: { url: image.dataUri } };
    const turns: Turn[] = [
      { id: 'a', role: 'user', text: 'What is it?', images: [image, image] },
      { id: 'b', role: 'user', text: '', images: [image] },
      { id: 'c', role: 'user', text: 'And now?' },
    ];
    expect(messagesOf(turns)).toEqual([
      { role: 'user', content: [part, part, { type: 'text', text: 'What is it?' }] },
      { role: 'user', content: [part] },
      { role: 'user', content: 'And now?' },
    ]);
  });

  it('has a history per compared model', () => {
    let turns = ended(asked([], 'a'), 'a-m', 'shared');
    turns = ended(ended(asked(turns, 'b', ['m', 'n']), 'b-m', 'left'), 'b-n', 'right');
    expect(messagesOf(turns, 0)).toContainEqual({ role: 'assistant', content: 'left' });
    const right = messagesOf(turns, 1);
    expect(right).toContainEqual({ role: 'assistant', content: 'right' });
    expect(right).toContainEqual({ role: 'assistant', content: 'shared' });
    expect(right).not.toContainEqual({ role: 'assistant', content: 'left' });
  });
});

describe('a conversation in the storage of the tab', () => {
  const storage = () => {
    const values = new Map<string, string>();
    return {
      values,
      getItem: (name: string) => values.get(name) ?? null,
      setItem: (name: string, value: string) => void values.set(name, value),
      removeItem: (name: string) => void values.delete(name),
    };
  };
  const check = {
    state: 'verified',
    lines: [{ ok: true, text: 'The hash matches.' }],
    enclave: 'simulated',
    jobId: 'j1',
    receipt: { model: 'm', usage: { prompt: 1, completion: 2 }, completedAt: 5 },
  } as const;
  const complete = reduceConversation(ended(asked([], 'a'), 'a-m', 'one'), {
    type: 'changed',
    answerId: 'a-m',
    changes: { check, costMicroUsd: 3, timing: { firstTextMs: 1, totalMs: 2 }, usage: { prompt: 1, completion: 2 } },
  });
  const kept = (turns: readonly Turn[]) => ({ turns, models: ['m'], form: { ...EMPTY_PARAMETERS, system: 'Be brief.' } });
  const withoutIds = (value: unknown): unknown => JSON.parse(JSON.stringify(value), (key, member) => (key === 'id' ? undefined : member));

  it('is restored as it was, for its account only', () => {
    const tab = storage();
    expect(storeConversation(tab, 'acc-1', kept(complete))).toBe(true);
    expect(withoutIds(loadConversation(tab, 'acc-1'))).toEqual(withoutIds(kept(complete)));
    expect(loadConversation(tab, 'acc-2')).toBeNull();
    expect(tab.values.size).toBe(0);
  });

  it('restores a running response as stopped, but no failed or empty response', () => {
    const tab = storage();
    const running = reduceConversation(asked(ended(asked(complete, 'b'), 'b-m', 'x', 'failed'), 'c'), {
      type: 'appended',
      answerId: 'c-m',
      delta: 'y',
    });
    storeConversation(tab, 'acc-1', kept(asked(running, 'd')));
    const turns = loadConversation(tab, 'acc-1')?.turns ?? [];
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'user', 'assistant', 'user']);
    expect(turns[4]).toMatchObject({ columns: [{ versions: [{ text: 'y', state: 'stopped' }] }] });
  });

  it('leaves nothing behind when it is too large, or the browser refuses', () => {
    const tab = storage();
    storeConversation(tab, 'acc-1', kept(complete));
    expect(storeConversation(tab, 'acc-1', kept(ended(asked([], 'a'), 'a-m', 'x'.repeat(2_100_000))))).toBe(false);
    expect(tab.values.size).toBe(0);
    const full = {
      ...tab,
      setItem: () => {
        throw new DOMException('full', 'QuotaExceededError');
      },
    };
    expect(storeConversation(full, 'acc-1', kept(complete))).toBe(false);
  });

  it('has the images of the newest questions that fit, and counts the others', () => {
    const image = (fill: string) => ({ name: `${fill}.png`, dataUri: `data:image/png;base64,${fill.repeat(900_000)}` });
    const turns: Turn[] = ['A', 'B', 'C'].map((fill) => ({ id: fill, role: 'user', text: fill, images: [image(fill)] }));
    const tab = storage();
    expect(storeConversation(tab, 'acc-1', kept(turns))).toBe(true);
    const restored = loadConversation(tab, 'acc-1')?.turns ?? [];
    expect(withoutIds(restored)).toEqual([
      { role: 'user', text: 'A', omittedImages: 1 },
      { role: 'user', text: 'B', images: [image('B')] },
      { role: 'user', text: 'C', images: [image('C')] },
    ]);
    expect(storeConversation(tab, 'acc-1', kept([...restored, { id: 'D', role: 'user', text: 'D', images: [image('D')] }]))).toBe(true);
    expect(loadConversation(tab, 'acc-1')?.turns).toMatchObject([{ omittedImages: 1 }, { omittedImages: 1 }, { text: 'C' }, { text: 'D' }]);
    tab.setItem(CONVERSATION_KEY, (tab.getItem(CONVERSATION_KEY) ?? '').replace('data:image/png', 'https://example.com/'));
    expect(loadConversation(tab, 'acc-1')).toBeNull();
  });

  it.each([
    '',
    '{',
    '[]',
    '{"version":1}',
    '{"version":1,"accountId":"acc-1","models":[],"turns":[{"role":"assistant","columns":[{"versions":[],"shown":0}]}]}',
  ])('removes %j, which no version of the page stored', (text) => {
    const tab = storage();
    tab.setItem(CONVERSATION_KEY, text);
    expect(loadConversation(tab, 'acc-1')).toBeNull();
    expect(tab.values.size).toBe(0);
  });
});
