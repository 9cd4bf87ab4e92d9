/**
 * What daemon and engine process say to each other over the IPC channel. Both ends come from one build, so this union is
 * the whole contract. Everything that happened in one tick of the engine travels in one `tick` message.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Grammar } from '@inference/json-schema-grammar/grammar';
import type { ModelOrder, ModelSign } from '../model-process/messages.js';

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
  /** 0 takes the most likely token. Without a seed, rounding may turn a close call under load. */
  readonly temperature: number;
  readonly topP: number | null;
  readonly topK: number | null;
  /** Part of the likeliest token's probability below which a token is not taken. */
  readonly minP: number | null;
  /** Tokens of the vocabulary, and what is added to their logits. */
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  /** Any integer. With a seed the text is the same each time, whatever else runs. */
  readonly seed: number | null;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  /** Divides positive logits of tokens that were generated before, and multiplies negative ones. Default: 1, which is none. */
  readonly repetitionPenalty?: number;
}

export interface GenerationRequest {
  readonly prompt: PromptInput;
  /** Most tokens to generate, hidden ones included. 0: the tokens of the prompt are counted, also of one too long, and nothing is generated. */
  readonly maxTokens: number;
  /** The only texts that the output may be, as far as there is room. Null: the model writes as it likes. */
  readonly grammar: Grammar | null;
  /** Log probabilities are wanted with each token, and of so many of the most likely ones (0 to 20). Null: they are not. */
  readonly logprobs: number | null;
  readonly sampling: Sampling;
  /** Requests of one scope may share what was computed for a common beginning. Null: with nobody. */
  readonly cacheScope: string | null;
}

/** Texts whose meaning is wanted as vectors. */
export interface EmbeddingRequest {
  /** Plain texts, or tokens of the model's own vocabulary. At least one, none empty. */
  readonly inputs: readonly (string | readonly number[])[];
  /** Of each vector; at most what the model makes. Null: all of them. */
  readonly dimensions: number | null;
}

export interface EngineSettings {
  /** What the model is for. Left out: it writes text. */
  readonly type?: 'text' | 'embedding';
  /** Path of a GGUF file. */
  readonly modelPath: string;
  /** Streams that decode together. */
  readonly slots: number;
  /** Tokens of one stream, prompt and answer together. */
  readonly contextSize: number;
  /** `auto` takes what there is (Metal on a Mac); `none` is the processor. */
  readonly gpu: 'auto' | 'none';
  /** Streams that have to be repeatable share no batches, as on a GPU, even where they could. Default: where they cannot. */
  readonly keepApart?: boolean;
}

export interface EngineFacts {
  /** Name and build of the engine, and what it computes on: `llama.cpp b1234 metal`. */
  readonly build?: string;
  readonly slots: number;
  /** What a stream really got; the engine may round the wish to what its cache allows. */
  readonly contextSize: number;
}

/** What only this kind of process is told. */
export type EngineOrder =
  | { readonly type: 'start'; readonly job: number; readonly request: GenerationRequest }
  | { readonly type: 'embed'; readonly job: number; readonly request: EmbeddingRequest }
  | { readonly type: 'cancel'; readonly job: number }
  | { readonly type: 'pause'; readonly job: number }
  | { readonly type: 'resume'; readonly job: number };

export type ToEngine = ModelOrder<EngineSettings> | EngineOrder;

export interface Started {
  readonly job: number;
  readonly promptTokens: number;
  /** Of those, the ones that an earlier request of the same scope had left in memory. Left out: none. */
  readonly cachedTokens?: number;
  /** The rendered prompt ends with an opened think section, so the answer begins inside it. */
  readonly startsInsideThinking: boolean;
}

export type Ended =
  | { readonly job: number; readonly kind: 'finished'; readonly reason: 'stop' | 'length'; readonly completionTokens: number }
  | { readonly job: number; readonly kind: 'cancelled' }
  | { readonly job: number; readonly kind: 'context_length_exceeded'; readonly limit: number; readonly actual: number }
  | { readonly job: number; readonly kind: 'invalid_request'; readonly field: 'prompt' | 'grammar' | 'input' | 'logit_bias' }
  | { readonly job: number; readonly kind: 'engine_failed'; readonly message: string };

/** Of the tokens of one piece. */
export interface PieceLogprobs {
  readonly job: number;
  readonly logprobs: readonly TokenLogprob[];
}

/** What only this kind of process tells. */
export type EngineNews =
  | {
      readonly type: 'tick';
      readonly started: readonly Started[];
      /** Flat triples: job, number of tokens, text. Flat because it is read and written for every token. */
      readonly pieces: readonly (number | string)[];
      /** Of the pieces of those streams that want them, in the same order. */
      readonly logprobs: readonly PieceLogprobs[];
      readonly ended: readonly Ended[];
    }
  /** The vector of the next input of a job: base64 of little-endian 32-bit floats, of length 1. */
  | { readonly type: 'embedded'; readonly job: number; readonly vector: string; readonly tokens: number }
  | { readonly type: 'embedding_ended'; readonly ended: Ended };

export type FromEngine = ModelSign<EngineFacts> | EngineNews;
