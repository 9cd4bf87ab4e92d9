/**
 * What daemon and engine process say to each other over the IPC channel. Both ends come from one build, so this union is
 * the whole contract. Everything that happened in one tick of the engine travels in one `tick` message.
 */

/** A tool call as templates know it (Hugging Face conventions). */
export interface PromptToolCall {
  readonly id: string;
  readonly type: 'function';
  /** Arguments are an object; a text only where the client sent something that is no JSON object. */
  readonly function: { readonly name: string; readonly arguments: unknown };
}

/** One chat message as the model's template sees it. */
export interface PromptMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly PromptToolCall[];
  readonly tool_call_id?: string;
  readonly name?: string;
}

/** A tool as templates know it (Hugging Face conventions). */
export interface PromptTool {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description: string; readonly parameters: Readonly<Record<string, unknown>> };
}

export interface ChatInput {
  readonly type: 'chat';
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly PromptTool[];
  /** The last message is an assistant's whose turn stays open, so that the model goes on with it. */
  readonly continuesLast: boolean;
  /** What the template is told as `enable_thinking`; null: nothing. */
  readonly thinking: boolean | null;
  /** The answer may not begin with a think section: one that the template opened is closed. */
  readonly answersAtOnce: boolean;
}

/** What the model continues. */
export type PromptInput =
  | ChatInput
  /** No template; all of it is plain text. */
  | { readonly type: 'text'; readonly text: string };

export interface Sampling {
  /** 0 is greedy. */
  readonly temperature: number;
  readonly topP: number | null;
  readonly topK: number | null;
  /** Any integer. With a seed the text is the same each time, whatever else runs. */
  readonly seed: number | null;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
}

/** A JSON Schema of the few keywords that the engine's grammars know. */
export type GrammarSchema = Readonly<Record<string, unknown>>;

/** The only form that an output may have: JSON of the schema between two texts. */
export interface OutputGrammar {
  readonly before: string;
  readonly schema: GrammarSchema;
  readonly after: string;
}

export interface GenerationRequest {
  readonly prompt: PromptInput;
  /** Most tokens to generate, hidden ones included. 0: the tokens of the prompt are counted and nothing is generated. */
  readonly maxTokens: number;
  /** Null: the model writes as it likes. */
  readonly grammar: OutputGrammar | null;
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
  | { readonly job: number; readonly kind: 'invalid_request'; readonly field: 'prompt' | 'grammar' }
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
