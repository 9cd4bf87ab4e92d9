/** The internal job of all text formats: engine parameters only, nothing about rendering. */
import type { InputImageType } from '@inference/protocol';

/** A tool call of the model. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text as generated; clients may send back invalid JSON. */
  readonly arguments: string;
}

export type { InputImageType };

/** An image in a prompt. Structure, size and dimensions are checked; the pixels are not decoded. */
export interface InputImage {
  readonly mediaType: InputImageType;
  /** Canonical base64 of the encoded image. */
  readonly base64: string;
  readonly detail: 'auto' | 'low' | 'high';
  /** Path of the part in the client's request, such as `messages[0].content[1]`. */
  readonly field: string;
  /** URL in the request, in place of the data. */
  readonly url?: string;
  /** Pixels that the header declares. Absent for an image at a URL. */
  readonly pixels?: number;
}

/** Neighbouring texts are joined, so that no text part follows another. */
export type ContentPart = { readonly type: 'text'; readonly text: string } | { readonly type: 'image'; readonly image: InputImage };

/** A string without images; otherwise parts in order, at least one of them an image. */
export type MessageContent = string | readonly ContentPart[];

export type ChatMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: MessageContent }
  | {
      readonly role: 'assistant';
      readonly content: string;
      /** Reasoning before the text, or null. */
      readonly reasoning: string | null;
      readonly toolCalls: readonly ToolCall[];
    }
  | {
      readonly role: 'tool';
      readonly content: MessageContent;
      readonly toolCallId: string;
      /** Name of the called tool, or null without an earlier call of this id. */
      readonly name: string | null;
      /** The client reports a failed tool. */
      readonly isError: boolean;
    };

/** Input that the model continues. */
export type Prompt =
  /** At least one message, rendered by the model's chat template. System messages may occur anywhere. */
  | {
      readonly type: 'chat';
      readonly messages: readonly ChatMessage[];
      /** The last message is the start of the response, without calls. Its turn stays open, and the output excludes the message. */
      readonly continuesLast: boolean;
    }
  /** Text to continue as is, without a template. */
  | {
      readonly type: 'text';
      readonly text: string;
      /** Text after the output, which the model fills in between. Absent: none. */
      readonly suffix?: string;
    };

/** A JSON Schema object. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface Tool {
  readonly name: string;
  readonly description: string | null;
  readonly parameters: JsonSchema;
  /** Arguments must be valid against `parameters`. */
  readonly strict: boolean;
}

export type ToolChoice =
  /** The model decides. Also the value where there are no tools. */
  | { readonly type: 'auto' }
  /** Tools are described to the model, but calls are not permitted. */
  | { readonly type: 'none' }
  /** The model must make at least one call. */
  | { readonly type: 'required' }
  /** A call of the named tool. */
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
      /** Member of the schema in the request, if not the format's own. */
      readonly field?: string;
    }
  /** One of these texts, exactly. */
  | { readonly type: 'choice'; readonly choices: readonly string[]; readonly field: string }
  /** A text that matches the regular expression (ECMA-262) as a whole. */
  | { readonly type: 'regex'; readonly pattern: string; readonly field: string };

/** Sampling parameters; null: not requested. */
export interface Sampling {
  /** 0 to 2; 0 is greedy. */
  readonly temperature: number;
  /** Nucleus mass, above 0 and up to 1. */
  readonly topP: number | null;
  /** At least 1: number of most probable tokens to sample from. */
  readonly topK: number | null;
  /** Above 0, up to 1: minimum probability relative to the most probable token. */
  readonly minP: number | null;
  /** Added to the logits of tokens by vocabulary index. */
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  /** Integer from -2^63 to 2^63; engines with narrower seeds reduce the value. */
  readonly seed: number | null;
  /** -2 to 2. */
  readonly frequencyPenalty: number | null;
  /** -2 to 2. */
  readonly presencePenalty: number | null;
  /** Above 0: divides logits of tokens already in the output (multiplies negative logits). */
  readonly repetitionPenalty: number | null;
}

/** The internal job of every text format. */
export interface TextRequest {
  /** `count` generates no output: only the tokens of the prompt are counted. */
  readonly task: 'generate' | 'count';
  readonly model: string;
  readonly stream: boolean;
  /** Maximum tokens of each choice. */
  readonly maxTokens: number | null;
  /** Independent outputs for the prompt, 1 to `MAX_CHOICES`. */
  readonly choices: number;
  readonly prompt: Prompt;
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** False: at most one call per response. */
  readonly parallelToolCalls: boolean;
  readonly responseFormat: ResponseFormat;
  readonly sampling: Sampling;
  /** Number of alternatives per token (0 to 20); null: no log probabilities. */
  readonly logprobs: number | null;
  /** Chat template argument of models with optional thinking; null: the model's default. */
  readonly thinking: boolean | null;
  /** Up to sixteen, none empty, none twice. */
  readonly stop: readonly string[];
}

/** The internal job of a request for vectors. */
export interface EmbeddingRequest {
  readonly task: 'embed';
  readonly model: string;
  /** Texts, or tokens of the model's vocabulary. At least one, none empty. */
  readonly inputs: readonly (string | readonly number[])[];
  /** Numbers in each vector; null: as many as the model makes. */
  readonly dimensions: number | null;
  /** How the vectors are written: as JSON numbers, or as base64 of little-endian 32-bit floats. */
  readonly encoding: 'float' | 'base64';
}

/** Pixels as `<width>x<height>`; `auto`: the model's default; null: not requested. */
export type ImageSize = `${number}x${number}` | 'auto' | null;

/** The internal job of a request for images. */
export interface ImageRequest {
  readonly task: 'image';
  /** Null: the model of the job context. */
  readonly model: string | null;
  /** 1 to 32,000 characters, not only white space. */
  readonly prompt: string;
  /** 1 to 4. */
  readonly count: number;
  /** Resolved for a model by `imageSizeOf`. */
  readonly size: ImageSize;
  readonly format: 'png' | 'jpeg' | 'webp';
  /** `url`: the response contains the URLs of the job context; `b64_json`: the image data. */
  readonly responseFormat: 'url' | 'b64_json';
  /** Integer from -2^63 to 2^63; engines with narrower seeds reduce the value. Null: random. */
  readonly seed: number | null;
  /** Higher quality takes more steps; null: the model's default. */
  readonly quality: 'low' | 'medium' | 'high' | null;
  /** JPEG and WebP quality in percent, 0 to 100; null: the encoder's default. No effect on PNG. */
  readonly compression: number | null;
}
