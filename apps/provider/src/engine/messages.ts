/**
 * IPC messages between the daemon and an engine process, which runs one text, embedding or vision model.
 *
 * Both processes come from one build, so messages carry no version.
 */
import type { TokenLogprob } from '@inference/formats';
import type { Grammar } from '@inference/json-schema-grammar/grammar';
import type { ModelProcessEvent, ModelProcessRequest } from '../model-process/messages.js';
import type { KvCacheType } from '../models/kv-cache-type.js';

/** Tool call in the form that chat templates expect (Hugging Face conventions). */
export interface PromptToolCall {
  readonly id: string;
  readonly type: 'function';
  /** The `arguments` are the parsed object, or the client's text if it is not a JSON object. */
  readonly function: { readonly name: string; readonly arguments: unknown };
}

export interface PromptImage {
  readonly type: 'image';
  /** The encoded file: PNG, JPEG, WebP or GIF. */
  readonly data: Uint8Array;
  /** Path of the image in the client's request, such as `messages[0].content[1]`. */
  readonly field: string;
}

export type PromptPart = { readonly type: 'text'; readonly text: string } | PromptImage;

export interface PromptMessage extends Omit<TemplateMessage, 'content'> {
  /** A list if the message contains an image. Its texts and images follow each other without a separator. */
  readonly content: string | readonly PromptPart[];
}

/** Chat message in the form that chat templates expect. */
export interface TemplateMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly PromptToolCall[];
  readonly tool_call_id?: string;
  readonly name?: string;
}

/** Tool in the form that chat templates expect (Hugging Face conventions). */
export interface PromptTool {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description: string; readonly parameters: Readonly<Record<string, unknown>> };
}

export interface ChatInput {
  readonly type: 'chat';
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly PromptTool[];
  /** The last message is an open assistant turn that the model continues. */
  readonly continuesLast: boolean;
  /** Value of the template variable `enable_thinking`, or null to leave it unset. */
  readonly thinking: boolean | null;
  /** If the rendered prompt ends with an open think section, closes the section, so that the answer begins after it. */
  readonly skipsThinking: boolean;
}

export type PromptInput =
  | ChatInput
  /** Plain text without a template. Models with fill-in-the-middle tokens answer between `text` and `suffix`. */
  | { readonly type: 'text'; readonly text: string; readonly suffix?: string };

export interface Sampling {
  /** 0 takes the most likely token. Without a seed, rounding under load may change the choice between near-equal tokens. */
  readonly temperature: number;
  readonly topP: number | null;
  readonly topK: number | null;
  /** Minimum probability of a token, as a fraction of the likeliest token's probability. */
  readonly minP: number | null;
  /** Pairs of token id and value added to the token's logit. */
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  /** Any integer. With a seed, one machine gives the same text under any load. */
  readonly seed: number | null;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  /** Divides the positive and multiplies the negative logits of tokens that were already generated. Default: 1 (off). */
  readonly repetitionPenalty?: number;
}

export interface GenerationRequest {
  readonly prompt: PromptInput;
  /**
   * Maximum tokens to generate, hidden tokens included. 0 counts the prompt's tokens, even of an overlong prompt, and generates
   * nothing.
   */
  readonly maxTokens: number;
  /** Restricts the output. The output is cut off if no complete text fits `maxTokens`. Null if unrestricted. */
  readonly grammar: Grammar | null;
  /** Whether the grammar permits free text. If so, output cut at `maxTokens` ends with `length` even where the grammar permits an end. */
  readonly permitsFreeText?: boolean;
  /** Alternatives (0 to 20) reported with each token's log probability. Null reports no log probabilities. */
  readonly logprobs: number | null;
  readonly sampling: Sampling;
  /** Requests with the same cache scope may share the KV cache of a common prompt prefix. Null shares nothing. */
  readonly cacheScope: string | null;
}

export interface EmbeddingRequest {
  /** Plain texts, or token ids of the model's vocabulary. At least one input, none empty. */
  readonly inputs: readonly (string | readonly number[])[];
  /** Length of each vector, up to the length of the model's vectors. Null for the full length. */
  readonly dimensions: number | null;
}

export interface EngineSettings {
  /** Default: `text`. */
  readonly type?: 'text' | 'embedding' | 'vision';
  readonly modelPath: string;
  /** Path of the projector (`mmproj`), a GGUF file that encodes images. Required for `vision`. */
  readonly projectorPath?: string;
  /** Sequences that can decode concurrently. */
  readonly slots: number;
  /** Tokens of one sequence, prompt and answer together. */
  readonly contextSize: number;
  /** Element type of the KV cache of text and vision models. Default: `f16`. */
  readonly kvCacheType?: KvCacheType;
  /** `auto` uses the available GPU (Metal on a Mac); `none` uses the CPU. */
  readonly gpu: 'auto' | 'none';
  /** Always gives requests with a seed batches of their own, as on a GPU. Default: only if shared batches are not bit-exact. */
  readonly keepApart?: boolean;
  /** Whether a generation that runs alone may use speculative decoding. Default: true. */
  readonly drafts?: boolean;
}

export interface EngineFacts {
  /** Name, build and device of the engine: `llama.cpp b1234 metal`. */
  readonly build?: string;
  readonly slots: number;
  /** Actual context per sequence. The engine may round the requested size to its cache layout. */
  readonly contextSize: number;
  /** Absent for a model without image input. */
  readonly vision?: {
    /** Maximum prompt tokens of one image, with the tokens before and after the image. */
    readonly maxImageTokens: number;
  };
}

/** In addition to the requests to every model process. `job`: id of a generation or embedding. */
export type EngineRequest =
  | { readonly type: 'start'; readonly job: number; readonly request: GenerationRequest }
  | { readonly type: 'embed'; readonly job: number; readonly request: EmbeddingRequest }
  | { readonly type: 'cancel'; readonly job: number }
  | { readonly type: 'pause'; readonly job: number }
  | { readonly type: 'resume'; readonly job: number };

export type ToEngine = ModelProcessRequest<EngineSettings> | EngineRequest;

export interface Started {
  readonly job: number;
  readonly promptTokens: number;
  /** Prompt tokens reused from the KV cache of an earlier request with the same scope. Default: 0. */
  readonly cachedTokens?: number;
  /** Whether the rendered prompt ends with an open think tag, so that the answer begins inside a think section. */
  readonly startsInsideThinking: boolean;
}

export type Ended =
  | { readonly job: number; readonly kind: 'finished'; readonly reason: 'stop' | 'length'; readonly completionTokens: number }
  | { readonly job: number; readonly kind: 'cancelled' }
  | { readonly job: number; readonly kind: 'context_length_exceeded'; readonly limit: number; readonly actual: number }
  | { readonly job: number; readonly kind: 'invalid_request'; readonly field: 'prompt' | 'grammar' | 'input' | 'logit_bias' }
  /** The model does not support this field of the request. */
  | { readonly job: number; readonly kind: 'unsupported'; readonly field: 'suffix' }
  /** An image cannot be decoded; `path` is its place in the client's request. */
  | { readonly job: number; readonly kind: 'invalid_image'; readonly path: string }
  | { readonly job: number; readonly kind: 'engine_failed'; readonly message: string };

/** Log probabilities of the tokens of one piece. */
export interface PieceLogprobs {
  readonly job: number;
  readonly logprobs: readonly TokenLogprob[];
}

/** In addition to the events of every model process. */
export type EngineEvent =
  /** The events of all generations since the last `tick`. May be empty, to report progress. */
  | {
      readonly type: 'tick';
      readonly started: readonly Started[];
      /** Triples of job, token count and text, in a flat array because most tokens pass through here one at a time. */
      readonly pieces: readonly (number | string)[];
      /** Log probabilities for the pieces of the generations that requested them, in the order of `pieces`. */
      readonly logprobs: readonly PieceLogprobs[];
      readonly ended: readonly Ended[];
    }
  /** The vector of a job's next input, normalised to length 1: base64 of little-endian 32-bit floats. */
  | { readonly type: 'embedded'; readonly job: number; readonly vector: string; readonly tokens: number }
  | { readonly type: 'embedding_ended'; readonly ended: Ended };

export type FromEngine = ModelProcessEvent<EngineFacts> | EngineEvent;
