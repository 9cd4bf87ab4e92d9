/**
 * What daemon and engine process say to each other over the IPC channel. Both ends come from one build, so this union is
 * the whole contract. Everything that happened in one tick of the engine travels in one `tick` message.
 */

/** One chat message as the model's template sees it. Members beyond these are passed to the template unchanged. */
export interface PromptMessage {
  readonly role: string;
  readonly content: string;
}

export interface Sampling {
  /** 0 is greedy. */
  readonly temperature: number;
  readonly topP: number | null;
  /** Any integer. With a seed the text is the same each time, whatever else runs. */
  readonly seed: number | null;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
}

export interface GenerationRequest {
  readonly messages: readonly PromptMessage[];
  /** Most tokens to generate, hidden ones included. */
  readonly maxTokens: number;
  readonly sampling: Sampling;
}

export interface EngineSettings {
  /** Path of a GGUF file. */
  readonly modelPath: string;
  /** Streams that decode together. */
  readonly slots: number;
  /** Tokens of one stream, prompt and answer together. */
  readonly contextSize: number;
  /** `auto` takes what there is (Metal on a Mac); `none` is the processor. */
  readonly gpu: 'auto' | 'none';
}

export interface EngineFacts {
  readonly slots: number;
  /** What a stream really got; the engine may round the wish to what its cache allows. */
  readonly contextSize: number;
}

export type ToEngine =
  | { readonly type: 'load'; readonly settings: EngineSettings }
  | { readonly type: 'start'; readonly job: number; readonly request: GenerationRequest }
  | { readonly type: 'cancel'; readonly job: number }
  | { readonly type: 'pause'; readonly job: number }
  | { readonly type: 'resume'; readonly job: number }
  | { readonly type: 'ping' };

export interface Started {
  readonly job: number;
  readonly promptTokens: number;
  /** The rendered prompt ends with an opened think section, so the answer begins inside it. */
  readonly startsInsideThinking: boolean;
}

export type Ended =
  | { readonly job: number; readonly kind: 'finished'; readonly reason: 'stop' | 'length'; readonly completionTokens: number }
  | { readonly job: number; readonly kind: 'cancelled' }
  | { readonly job: number; readonly kind: 'context_length_exceeded'; readonly limit: number; readonly actual: number }
  | { readonly job: number; readonly kind: 'invalid_request' }
  | { readonly job: number; readonly kind: 'engine_failed'; readonly message: string };

export type FromEngine =
  | { readonly type: 'loaded'; readonly facts: EngineFacts }
  | { readonly type: 'load_failed'; readonly message: string }
  | {
      readonly type: 'tick';
      readonly started: readonly Started[];
      /** Flat triples: job, number of tokens, text. Flat because it is read and written for every token. */
      readonly pieces: readonly (number | string)[];
      readonly ended: readonly Ended[];
    }
  | { readonly type: 'pong' };
