/** `RequestKind`: a kind of request that an SDK sends. Also contains the prompts, tools and checks that all SDKs share. */
import type { SeededRandom } from '../seeded-random.js';

export interface Models {
  readonly text: string;
  readonly embedding: string;
  readonly image: string;
}

export interface SdkRequest {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly models: Models;
  readonly fetch: typeof globalThis.fetch;
  readonly random: SeededRandom;
  /** Position in the mix. */
  readonly index: number;
  /** Text of the prompt that only the answering machine may read. */
  readonly canary: string;
}

export interface RequestKind {
  readonly name: string;
  readonly weight: number;
  /** State of the last verdict. `refused`: the caller cancels the stream. Default: `verified`. */
  readonly ends?: 'verified' | 'refused';
  /** Whether the provider refuses the request inside the seal. */
  readonly isProviderRefusal?: boolean;
  /** Sends the request. Throws when the answer is not the requested kind. */
  run(request: SdkRequest): Promise<void>;
}

/** Retries of an SDK: enough for every failure that a run injects. */
export const MAX_RETRIES = 6;
/** Pixels of the smallest images of the demo model. */
export const IMAGE_SIZE = '128x128';

const QUESTIONS = ['What is the capital of Italy?', 'What is 7 + 8?', 'Repeat after me: größe 東京 🙂', 'line one\r\nline two', 'Hello!'];

export const TOOL = {
  name: 'get_weather',
  description: 'Get the weather for a city',
  parameters: {
    type: 'object' as const,
    properties: { city: { type: 'string' as const } },
    required: ['city'] as ['city'],
    additionalProperties: false as const,
  },
};
export const TOOL_QUESTION = 'What is the weather in Paris?';
export const TOOL_RESULT = 'sunny';

/** Schema of structured output, short enough for a small model. */
export const UNIT_SCHEMA = {
  type: 'object' as const,
  properties: { unit: { type: 'string' as const, enum: ['c', 'f'] } },
  required: ['unit'] as ['unit'],
  additionalProperties: false as const,
};

/** Runs one of the formats, in rotation by the request's index. */
export function inTurn<T>({ index }: Pick<SdkRequest, 'index'>, formats: readonly (() => T)[]): T {
  const format = formats[index % formats.length];
  if (format === undefined) throw new RangeError('no format');
  return format();
}

export function questionOf({ random, canary }: Pick<SdkRequest, 'random' | 'canary'>): string {
  return `${random.pick(QUESTIONS)} ${canary}`;
}

/** Prompt with a long answer, so that a caller can cancel the stream. */
export function longQuestionOf({ canary }: Pick<SdkRequest, 'canary'>): string {
  return `Tell me a story about Mia. ${canary}`;
}

/** Prompt that exceeds the context of every demo model. */
export function tooLongPromptOf({ canary }: Pick<SdkRequest, 'canary'>): string {
  return `${canary} `.repeat(4000);
}

export function requireUnit(json: string): void {
  const { unit } = JSON.parse(json) as { unit?: unknown };
  require(unit === 'c' || unit === 'f', `a unit, not ${json}`);
}

export function require(condition: boolean, expected: string): asserts condition {
  if (!condition) throw new Error(`expected ${expected}`);
}

/** PNG signature (RFC 2083 section 3.1). */
export function requirePng(base64: string | undefined): void {
  const bytes = Buffer.from(base64 ?? '', 'base64');
  require(bytes.subarray(0, 8).toString('hex') === '89504e470d0a1a0a', `a PNG, not ${bytes.length} other bytes`);
}

/** Requires a Euclidean norm of 1, because the embedding model normalizes. */
export function requireUnitVector(vector: readonly number[] | undefined): void {
  const norm = Math.hypot(...(vector ?? []));
  require(Math.abs(norm - 1) < 1e-3, `a unit vector, not one of length ${norm}`);
}
