/**
 * Stores the chat conversation in the tab's session storage, restores and removes it. The copy belongs to one account and has a maximum
 * size.
 */
import type { EnclaveEvidence } from '@inference/protocol';
import { CONVERSATION_KEY } from '../../../api/tab-storage.js';
import type { CheckLine } from '../../../features/trust/check-line.js';
import { imageChars, isImageDataUri, type QuestionImage } from '../attachments/question-image.js';
import { member, parseJson } from '../json.js';
import type { ProviderFacts } from '../requests/provider-facts.js';
import type { AnswerCheck, ReceiptFacts } from '../verification/check-answer.js';
import {
  type Answer,
  type AnswerColumn,
  isRunning,
  newAnswer,
  type Question,
  type Timing,
  type TokenUsage,
  type Turn,
} from './conversation.js';
import { EMPTY_PARAMETERS, type ParameterForm } from './parameters.js';

export interface StoredConversation {
  readonly turns: readonly Turn[];
  /** Selected models; the second model is for comparisons. */
  readonly models: readonly string[];
  readonly form: ParameterForm;
}

type TabStorage = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

const VERSION = 1;
/** Maximum characters. Browsers allow some five million per origin. */
const MAX_CHARS = 2_000_000;

/**
 * Stores the conversation, without the oldest images if the conversation is too large.
 *
 * @returns False if the text alone is too large, or the browser refuses. The earlier copy is then removed.
 */
export function storeConversation(storage: TabStorage, accountId: string, { turns, models, form }: StoredConversation): boolean {
  const textOf = (stored: readonly Turn[]): string => JSON.stringify({ version: VERSION, accountId, models, form, turns: stored });
  const storable = turns.flatMap(storableTurn);
  let text = textOf(storable);
  if (text.length > MAX_CHARS) text = textOf(withoutImages(storable, text.length - MAX_CHARS));
  try {
    if (text.length > MAX_CHARS) throw new RangeError('the conversation is too large');
    storage.setItem(CONVERSATION_KEY, text);
    return true;
  } catch {
    // The caller shows the failure.
    forgetConversation(storage);
    return false;
  }
}

export function forgetConversation(storage: TabStorage): void {
  storage.removeItem(CONVERSATION_KEY);
}

/** Restores the conversation of this account, if any. Removes a conversation of another account or version. */
export function loadConversation(storage: TabStorage, accountId: string): StoredConversation | null {
  const text = storage.getItem(CONVERSATION_KEY);
  if (text === null) return null;
  const stored = readConversation(text, accountId);
  if (stored === null) forgetConversation(storage);
  return stored;
}

/** Drops failed and empty responses. Running responses become stopped. */
function storableTurn(turn: Turn): readonly Turn[] {
  if (turn.role === 'user') return [turn];
  const columns = turn.columns.flatMap(({ versions, shown }): AnswerColumn[] => {
    const stored = versions.filter(({ state, text }) => state !== 'failed' && text !== '').map(storableAnswer);
    const at = stored.findIndex(({ id }) => id === versions[shown]?.id);
    return stored.length === 0 ? [] : [{ versions: stored, shown: at < 0 ? stored.length - 1 : at }];
  });
  return columns.length === 0 ? [] : [{ ...turn, columns }];
}

/** Removes the images of the oldest questions until the text is shorter by `chars` characters. */
function withoutImages(turns: readonly Turn[], chars: number): readonly Turn[] {
  let excess = chars;
  return turns.map((turn) => {
    if (excess <= 0 || turn.role !== 'user' || turn.images === undefined) return turn;
    excess -= imageChars(turn.images);
    const { images, omittedImages = 0, ...question } = turn;
    return { ...question, omittedImages: omittedImages + images.length };
  });
}

function storableAnswer(answer: Answer): Answer {
  const check: AnswerCheck = answer.check.state === 'checking' ? { state: 'none' } : answer.check;
  return { ...answer, check, ...(isRunning(answer) ? { state: 'stopped' } : {}) };
}

function readConversation(text: string, accountId: string): StoredConversation | null {
  const value = parseJson(text);
  if (member(value, 'version') !== VERSION || member(value, 'accountId') !== accountId) return null;
  const turns = list(member(value, 'turns'), readTurn);
  const models = list(member(value, 'models'), textOrNull);
  const form = member(value, 'form');
  if (turns === null || models === null) return null;
  const field = (name: keyof ParameterForm): string => textOrNull(member(form, name)) ?? EMPTY_PARAMETERS[name];
  return {
    turns,
    models,
    form: {
      system: field('system'),
      temperature: field('temperature'),
      topP: field('topP'),
      maxTokens: field('maxTokens'),
      seed: field('seed'),
      stop: field('stop'),
    },
  };
}

/** Parses a stored turn. Null if invalid. The new id never equals an id from `useChat`. */
function readTurn(value: unknown, index: number): Turn | null {
  const id = `stored-${index}`;
  if (member(value, 'role') === 'user') return readQuestion(value, id);
  const columns = list(member(value, 'columns'), (column, at): AnswerColumn | null => {
    const versions = list(member(column, 'versions'), (answer, version) => readAnswer(answer, `${id}-${at}-${version}`));
    const shown = member(column, 'shown');
    if (versions === null || typeof shown !== 'number' || !(shown in versions)) return null;
    return { versions, shown };
  });
  return columns === null || columns.length === 0 ? null : { id, role: 'assistant', columns };
}

function readQuestion(value: unknown, id: string): Question | null {
  const text = textOrNull(member(value, 'text'));
  if (text === null) return null;
  const images = list(member(value, 'images') ?? [], readImage);
  const omitted = member(value, 'omittedImages') ?? 0;
  if (images === null || typeof omitted !== 'number') return null;
  return { id, role: 'user', text, ...(images.length === 0 ? {} : { images }), ...(omitted === 0 ? {} : { omittedImages: omitted }) };
}

function readImage(value: unknown): QuestionImage | null {
  const [name, dataUri] = [textOrNull(member(value, 'name')), textOrNull(member(value, 'dataUri'))];
  return name === null || dataUri === null || !isImageDataUri(dataUri) ? null : { name, dataUri };
}

function readAnswer(value: unknown, id: string): Answer | null {
  const [text, model, state] = [textOrNull(member(value, 'text')), textOrNull(member(value, 'model')), member(value, 'state')];
  if (text === null || model === null || (state !== 'complete' && state !== 'stopped')) return null;
  const cost = member(value, 'costMicroUsd');
  return {
    ...newAnswer(id, model),
    text,
    state,
    provider: readProvider(member(value, 'provider')),
    usage: readUsage(member(value, 'usage')),
    finishReason: textOrNull(member(value, 'finishReason')),
    check: readCheck(member(value, 'check')),
    costMicroUsd: typeof cost === 'number' ? cost : null,
    timing: readTiming(member(value, 'timing')),
  };
}

function readProvider(value: unknown): ProviderFacts | null {
  const text = (name: keyof ProviderFacts): string => textOrNull(member(value, name)) ?? '';
  if (text('id') === '') return null;
  return {
    id: text('id'),
    chip: text('chip'),
    trustLevel: text('trustLevel'),
    secureEnclave: member(value, 'secureEnclave') === true,
    publicKey: text('publicKey'),
    jobId: textOrNull(member(value, 'jobId')),
  };
}

function readUsage(value: unknown): TokenUsage | null {
  const [prompt, completion] = [member(value, 'prompt'), member(value, 'completion')];
  return typeof prompt === 'number' && typeof completion === 'number' ? { prompt, completion } : null;
}

function readTiming(value: unknown): Timing | null {
  const [firstTextMs, totalMs] = [member(value, 'firstTextMs'), member(value, 'totalMs')];
  return typeof totalMs === 'number' ? { firstTextMs: typeof firstTextMs === 'number' ? firstTextMs : null, totalMs } : null;
}

/** Reads the stored result of verification, which cannot be repeated: the exact bytes of the response are not stored. */
function readCheck(value: unknown): AnswerCheck {
  const state = member(value, 'state');
  const reason = textOrNull(member(value, 'reason'));
  if (state === 'unknown' && reason !== null) return { state, reason };
  const enclave = (['simulated', 'claimed', 'certified'] satisfies EnclaveEvidence[]).find((one) => one === member(value, 'enclave'));
  const lines = list(member(value, 'lines'), (line): CheckLine | null => {
    const [ok, text] = [member(line, 'ok'), textOrNull(member(line, 'text'))];
    return typeof ok === 'boolean' && text !== null ? { ok, text } : null;
  });
  if ((state !== 'verified' && state !== 'failed') || enclave === undefined || lines === null) return { state: 'none' };
  return { state, lines, enclave, jobId: textOrNull(member(value, 'jobId')), receipt: readReceipt(member(value, 'receipt')) };
}

function readReceipt(value: unknown): ReceiptFacts | null {
  const [model, completedAt] = [textOrNull(member(value, 'model')), member(value, 'completedAt')];
  const usage = readUsage(member(value, 'usage'));
  return model === null || typeof completedAt !== 'number' || usage === null ? null : { model, completedAt, usage };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Reads an array. Null: not an array, or an item is invalid. */
function list<Item>(value: unknown, read: (item: unknown, index: number) => Item | null): readonly Item[] | null {
  if (!Array.isArray(value)) return null;
  const items = value.map(read).filter((item) => item !== null);
  return items.length === value.length ? items : null;
}
