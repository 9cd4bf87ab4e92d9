/**
 * Types of a chat conversation, its reducer `reduceConversation`, and `chatBody`, which renders the body of a chat request.
 *
 * Turns are questions and replies. A reply has one column per compared model. A column has one or more versions: its regenerated answers.
 */
import type { QuestionImage } from '../attachments/question-image.js';
import type { Problem } from '../requests/problems.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import type { AnswerCheck } from '../verification/check-answer.js';
import type { Parameters } from './parameters.js';

export interface TokenUsage {
  readonly prompt: number;
  readonly completion: number;
}

/** Times since the user sent the question. */
export interface Timing {
  /** Null if no text arrived. */
  readonly firstTextMs: number | null;
  readonly totalMs: number;
}

export interface Question {
  readonly id: string;
  readonly role: 'user';
  /** May be empty if the question has, or had, images. */
  readonly text: string;
  /** Absent: none. */
  readonly images?: readonly QuestionImage[];
  /** Number of images that were too large for the storage of the tab, and are lost. Absent: none. */
  readonly omittedImages?: number;
}

export type QuestionContent = Required<Pick<Question, 'text' | 'images'>>;

export interface Answer {
  readonly id: string;
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
  /** Null until the response is complete or stopped. Always null after a failure. */
  readonly timing: Timing | null;
}

/** Versions of one model's response. `shown`: index of the version that is displayed and sent with later questions. */
export interface AnswerColumn {
  readonly versions: readonly Answer[];
  readonly shown: number;
}

/** Responses to one question: one column per compared model. */
export interface Reply {
  readonly id: string;
  readonly role: 'assistant';
  readonly columns: readonly AnswerColumn[];
}

export type Turn = Question | Reply;

export type ConversationEvent =
  /** Appends a question and its reply after the first `before` turns. Later turns are dropped. */
  | { readonly type: 'asked'; readonly before: number; readonly question: Question; readonly reply: Reply }
  /** Adds and shows another version. Failed versions of the column are dropped. */
  | { readonly type: 'regenerated'; readonly id: string; readonly column: number; readonly answer: Answer }
  | { readonly type: 'shown'; readonly id: string; readonly column: number; readonly version: number }
  | { readonly type: 'appended'; readonly answerId: string; readonly delta: string }
  | { readonly type: 'changed'; readonly answerId: string; readonly changes: Partial<Omit<Answer, 'id'>> }
  | { readonly type: 'deleted'; readonly id: string }
  | { readonly type: 'cleared' };

export function reduceConversation(turns: readonly Turn[], event: ConversationEvent): readonly Turn[] {
  switch (event.type) {
    case 'asked':
      return [...turns.slice(0, event.before), event.question, event.reply];
    case 'regenerated':
      return changeColumn(turns, event, ({ versions }) => {
        const all = [...versions.filter(({ state }) => state !== 'failed'), event.answer];
        return { versions: all, shown: all.length - 1 };
      });
    case 'shown':
      return changeColumn(turns, event, (column) => (event.version in column.versions ? { ...column, shown: event.version } : column));
    case 'appended':
      return changeAnswer(turns, event.answerId, (answer) => ({ ...answer, state: 'streaming', text: answer.text + event.delta }));
    case 'changed':
      return changeAnswer(turns, event.answerId, (answer) => ({ ...answer, ...event.changes }));
    case 'deleted':
      return turns.filter(({ id }) => id !== event.id);
    case 'cleared':
      return [];
  }
}

function changeColumn(
  turns: readonly Turn[],
  at: { readonly id: string; readonly column: number },
  change: (column: AnswerColumn) => AnswerColumn,
): readonly Turn[] {
  return turns.map((turn) =>
    turn.role === 'assistant' && turn.id === at.id
      ? { ...turn, columns: turn.columns.map((column, index) => (index === at.column ? change(column) : column)) }
      : turn,
  );
}

function changeAnswer(turns: readonly Turn[], answerId: string, change: (answer: Answer) => Answer): readonly Turn[] {
  return turns.map((turn) => {
    if (turn.role === 'user' || !turn.columns.some(({ versions }) => versions.some(({ id }) => id === answerId))) return turn;
    const columns = turn.columns.map((column) => ({
      ...column,
      versions: column.versions.map((answer) => (answer.id === answerId ? change(answer) : answer)),
    }));
    return { ...turn, columns };
  });
}

export function newAnswer(id: string, model: string): Answer {
  return {
    id,
    text: '',
    model,
    state: 'waiting',
    provider: null,
    usage: null,
    finishReason: null,
    problem: null,
    check: { state: 'none' },
    costMicroUsd: null,
    timing: null,
  };
}

export function shownAnswer(column: AnswerColumn): Answer | undefined {
  return column.versions[column.shown];
}

export function imagesOf(turns: readonly Turn[]): readonly QuestionImage[] {
  return turns.flatMap((turn) => (turn.role === 'user' ? (turn.images ?? []) : []));
}

export function isRunning({ state }: Answer): boolean {
  return state === 'waiting' || state === 'streaming';
}

export function isBusy(turns: readonly Turn[]): boolean {
  return turns.some((turn) => turn.role === 'assistant' && turn.columns.some(({ versions }) => versions.some(isRunning)));
}

export interface ChatRequest {
  readonly model: string;
  /** System prompt, or empty. */
  readonly system: string;
  /** Turns before the response, including the last question. */
  readonly turns: readonly Turn[];
  /** Column whose responses are sent as history. A reply without this column contributes its first. */
  readonly column: number;
  readonly parameters: Parameters;
}

/** Body of a chat request, byte for byte as sent. The history omits empty, failed and running responses. */
export function chatBody({ model, system, turns, column, parameters }: ChatRequest): string {
  const messages = [
    ...(system.trim() === '' ? [] : [{ role: 'system', content: system }]),
    ...turns.flatMap((turn) => {
      if (turn.role === 'user') return [{ role: 'user', content: contentOf(turn) }];
      const own = turn.columns[column] ?? turn.columns[0];
      const answer = own === undefined ? undefined : shownAnswer(own);
      if (answer === undefined || answer.text === '' || (answer.state !== 'complete' && answer.state !== 'stopped')) return [];
      return [{ role: 'assistant', content: answer.text }];
    }),
  ];
  return JSON.stringify({ model, messages, ...parameters, stream: true, stream_options: { include_usage: true } });
}

/** Content of a message in the format of the API: the images, then the text that refers to them. */
function contentOf({ text, images = [] }: Question): string | readonly object[] {
  if (images.length === 0) return text;
  const parts = images.map(({ dataUri }) => ({ type: 'image_url', image_url: { url: dataUri } }));
  return text === '' ? parts : [...parts, { type: 'text', text }];
}
