/** Internal requests, to which the parsers convert all public formats. */
import type { InputImageType } from '@inference/protocol';

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text as generated. May be invalid JSON, also in requests. */
  readonly arguments: string;
}

export type { InputImageType };

/** An image in a prompt. Once there is data, structure, size and dimensions are checked, without decoding pixels. */
export interface InputImage {
  readonly mediaType: InputImageType;
  /** Canonical base64 of the image file; empty for an image at a URL until it is fetched. */
  readonly base64: string;
  readonly detail: 'auto' | 'low' | 'high';
  /** Path of the image's part in the client's request, such as `messages[0].content[1]`. */
  readonly field: string;
  /** The image's URL, if the request has a URL instead of data. */
  readonly url?: string;
  /** Number of pixels according to the file's header. Absent for an image at a URL. */
  readonly pixels?: number;
}

/** Part of message content. Adjacent text parts are joined, so no text part follows another. */
export type ContentPart = { readonly type: 'text'; readonly text: string } | { readonly type: 'image'; readonly image: InputImage };

/** A string if there are no images; otherwise parts in order, at least one of them an image. */
export type MessageContent = string | readonly ContentPart[];

export type ChatMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: MessageContent }
  | {
      readonly role: 'assistant';
      readonly content: string;
      /** Reasoning before the text; null: none. */
      readonly reasoning: string | null;
      readonly toolCalls: readonly ToolCall[];
    }
  | {
      readonly role: 'tool';
      readonly content: MessageContent;
      readonly toolCallId: string;
      /** Name of the called tool; null if the conversation has no call with this id. */
      readonly name: string | null;
      /** Whether the tool failed. */
      readonly isError: boolean;
    };

/** Input of a text model. */
export type Prompt =
  /** At least one message, rendered with the model's chat template. System messages may be at any position. */
  | {
      readonly type: 'chat';
      readonly messages: readonly ChatMessage[];
      /** The model continues the last message, which is of the assistant and has no calls. The output excludes the message itself. */
      readonly continuesLast: boolean;
    }
  /** Text that the model continues, without a chat template. */
  | {
      readonly type: 'text';
      readonly text: string;
      /** Text after the output, for fill-in-the-middle. Absent: none. */
      readonly suffix?: string;
    };

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Tool {
  readonly name: string;
  readonly description: string | null;
  readonly parameters: JsonSchema;
  /** Whether the arguments of a call must match `parameters`. */
  readonly strict: boolean;
}

export type ToolChoice =
  /** The model decides. Also used if there are no tools. */
  | { readonly type: 'auto' }
  /** The model sees the tools, but must not call any. */
  | { readonly type: 'none' }
  /** The model must make at least one call. */
  | { readonly type: 'required' }
  /** The model must call the named tool. */
  | { readonly type: 'named'; readonly name: string };

export type ResponseFormat =
  | { readonly type: 'text' }
  /** Any JSON object. */
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly name: string;
      readonly schema: JsonSchema;
      readonly strict: boolean;
      /** The request member with the schema, for error messages, if not the format's usual member. */
      readonly field?: string;
    }
  /** Exactly one of these texts. */
  | { readonly type: 'choice'; readonly choices: readonly string[]; readonly field: string }
  /** A text that the regular expression (ECMA-262) matches as a whole. */
  | { readonly type: 'regex'; readonly pattern: string; readonly field: string };

/** Sampling parameters; null: not requested, or without effect. */
export interface Sampling {
  /** 0 to 2; 0 means greedy sampling. */
  readonly temperature: number;
  /** Above 0, up to 1: cumulative probability for nucleus sampling. */
  readonly topP: number | null;
  /** At least 1: number of most probable tokens to sample from. */
  readonly topK: number | null;
  /** Above 0, up to 1: minimum probability relative to the most probable token. */
  readonly minP: number | null;
  /** Biases that are added to the logits of tokens. Tokens are indices in the model's vocabulary. */
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  /** Integer from -2^63 to 2^63. Engines with fewer seed bits reduce the value. */
  readonly seed: number | null;
  /** -2 to 2. */
  readonly frequencyPenalty: number | null;
  /** -2 to 2. */
  readonly presencePenalty: number | null;
  /** Above 0. Divides positive logits, and multiplies negative logits, of tokens that already occurred. */
  readonly repetitionPenalty: number | null;
}

/** Internal request of all formats that use text models. */
export interface TextRequest {
  /** `count`: only count the tokens of the prompt. */
  readonly task: 'generate' | 'count';
  readonly model: string;
  readonly stream: boolean;
  /** Maximum output tokens per choice; null if the request has no limit. */
  readonly maxTokens: number | null;
  /** Number of independent outputs for the prompt, 1 to `MAX_CHOICES`. */
  readonly choices: number;
  readonly prompt: Prompt;
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** False: at most one tool call per response. */
  readonly parallelToolCalls: boolean;
  readonly responseFormat: ResponseFormat;
  readonly sampling: Sampling;
  /** Number of alternative tokens with log probabilities, 0 to 20; null: no log probabilities. */
  readonly logprobs: number | null;
  /** Whether models with optional thinking should think; null: the model's default. Passed to the chat template. */
  readonly thinking: boolean | null;
  /** Up to 16 distinct stop sequences, none of them empty. */
  readonly stop: readonly string[];
}

/** Internal request for embeddings. */
export interface EmbeddingRequest {
  readonly task: 'embed';
  readonly model: string;
  /** Texts, or arrays of tokens of the model's vocabulary. At least one; none is empty. */
  readonly inputs: readonly (string | readonly number[])[];
  /** Length of each vector; null: the model's default. */
  readonly dimensions: number | null;
  /** Encoding of the vectors: JSON numbers, or base64 of little-endian 32-bit floats. */
  readonly encoding: 'float' | 'base64';
}

/** Image size in pixels; `auto`: the model's default; null: not specified. */
export type ImageSize = `${number}x${number}` | 'auto' | null;

/** Internal request for images. */
export interface ImageRequest {
  readonly task: 'image';
  /** Null if the request names no model; the job context then names it. */
  readonly model: string | null;
  /** 1 to 32,000 characters, not only white space. */
  readonly prompt: string;
  /** 1 to 4. */
  readonly count: number;
  /** `imageSizeOf` resolves the value for a model. */
  readonly size: ImageSize;
  readonly format: 'png' | 'jpeg' | 'webp';
  /** `url`: the response contains URLs from the job context. `b64_json`: the response contains the image data. */
  readonly responseFormat: 'url' | 'b64_json';
  /** Integer from -2^63 to 2^63. Engines with fewer seed bits reduce the value. Null: random. */
  readonly seed: number | null;
  /** Higher quality takes more steps; null: the model's default. */
  readonly quality: 'low' | 'medium' | 'high' | null;
  /** JPEG and WebP quality in percent, 0 to 100; null: the encoder's default. No effect on PNG. */
  readonly compression: number | null;
}
