/** State of a conversation: messages, how each response ended, and its verification. */
import type { Problem } from '../requests/problems.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import type { AnswerCheck } from '../verification/check-answer.js';
import type { Parameters } from './parameters.js';

export interface TokenUsage {
  readonly prompt: number;
  readonly completion: number;
}

export interface Question {
  readonly id: string;
  readonly role: 'user';
  readonly text: string;
}

export interface Answer {
  readonly id: string;
  readonly role: 'assistant';
  readonly text: string;
  readonly model: string;
  readonly state: 'waiting' | 'streaming' | 'complete' | 'stopped' | 'failed';
  readonly provider: ProviderFacts | null;
  readonly usage: TokenUsage | null;
  /** Finish reason: `stop`, `length`, … */
  readonly finishReason: string | null;
  readonly problem: Problem | null;
  readonly check: AnswerCheck;
  /** Null while unknown. */
  readonly costMicroUsd: number | null;
}

export type Turn = Question | Answer;

type ConversationEvent =
  | { readonly type: 'sent'; readonly question: Question | null; readonly answer: Answer }
  | { readonly type: 'appended'; readonly id: string; readonly delta: string }
  | { readonly type: 'changed'; readonly id: string; readonly changes: Partial<Omit<Answer, 'id' | 'role'>> }
  /** Removes a failed response before its question is sent again. */
  | { readonly type: 'removed'; readonly id: string }
  | { readonly type: 'cleared' };

export function conversation(turns: readonly Turn[], event: ConversationEvent): readonly Turn[] {
  switch (event.type) {
    case 'sent':
      return [...turns, ...(event.question === null ? [] : [event.question]), event.answer];
    case 'appended':
      return turns.map((turn) =>
        turn.id === event.id && turn.role === 'assistant' ? { ...turn, state: 'streaming', text: turn.text + event.delta } : turn,
      );
    case 'changed':
      return turns.map((turn) => (turn.id === event.id && turn.role === 'assistant' ? { ...turn, ...event.changes } : turn));
    case 'removed':
      return turns.filter((turn) => turn.id !== event.id);
    case 'cleared':
      return [];
  }
}

export function newAnswer(id: string, model: string): Answer {
  return {
    id,
    role: 'assistant',
    text: '',
    model,
    state: 'waiting',
    provider: null,
    usage: null,
    finishReason: null,
    problem: null,
    check: { state: 'none' },
    costMicroUsd: null,
  };
}

export function isBusy(turns: readonly Turn[]): boolean {
  return turns.some((turn) => turn.role === 'assistant' && (turn.state === 'waiting' || turn.state === 'streaming'));
}

/** Body of a chat request, byte for byte as sent. Failed responses are omitted from the history. */
export function chatBody(model: string, system: string, turns: readonly Turn[], parameters: Parameters): string {
  const messages = [
    ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
    ...turns
      .filter((turn) => turn.role === 'user' || (turn.text !== '' && (turn.state === 'complete' || turn.state === 'stopped')))
      .map(({ role, text }) => ({ role, content: text })),
  ];
  return JSON.stringify({ model, messages, ...parameters, stream: true, stream_options: { include_usage: true } });
}
