/**
 * The one internal job that the requests of every text format are normalised to. It holds what an engine needs and
 * nothing of how the answer will be written.
 */

/** A call that the model made. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as the model wrote it; clients may send back one that is no JSON. */
  readonly arguments: string;
}

export type ChatMessage =
  | { readonly role: 'system'; readonly content: string }
  | { readonly role: 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string;
      /** What the model thought before it answered, or null. */
      readonly reasoning: string | null;
      readonly toolCalls: readonly ToolCall[];
    }
  | {
      readonly role: 'tool';
      readonly content: string;
      readonly toolCallId: string;
      /** Name of the tool that was called, or null where no call of this id came before. */
      readonly name: string | null;
      /** The client says that the tool failed. */
      readonly isError: boolean;
    };

export type ChatRole = ChatMessage['role'];

/** What the model continues. */
export type Prompt =
  /** At least one message, to be put through the model's chat template. System messages may stand anywhere. */
  | {
      readonly type: 'chat';
      readonly messages: readonly ChatMessage[];
      /** The last message is the beginning of the answer, without calls: its turn stays open, and it is no part of the output. */
      readonly continuesLast: boolean;
    }
  /** A text that the model continues as it is, without a template. */
  | { readonly type: 'text'; readonly text: string };

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
  /** Tools are described to the model but it may not call any. */
  | { readonly type: 'none' }
  /** At least one call. */
  | { readonly type: 'required' }
  /** A call of this one of the tools. */
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
      /** Where the client put the schema, if not where its format has it. */
      readonly field?: string;
    }
  /** One of these texts, as it is. */
  | { readonly type: 'choice'; readonly choices: readonly string[]; readonly field: string }
  /** A text that the regular expression (ECMA-262) matches as a whole. */
  | { readonly type: 'regex'; readonly pattern: string; readonly field: string };

/** Null means that the client did not ask for it. */
export interface Sampling {
  /** 0 to 2; 0 is greedy. */
  readonly temperature: number;
  /** Nucleus mass, above 0 and up to 1. */
  readonly topP: number | null;
  /** At least 1; only this many of the most likely tokens are candidates. */
  readonly topK: number | null;
  /** Above 0 and up to 1; tokens less likely than this part of the most likely one are no candidates. */
  readonly minP: number | null;
  /** What is added to the logits of tokens, which go by their numbers in the model's vocabulary. */
  readonly logitBias: readonly (readonly [token: number, bias: number])[];
  /** An integer from -2^63 to 2^63; engines with narrower seeds reduce it. */
  readonly seed: number | null;
  /** -2 to 2. */
  readonly frequencyPenalty: number | null;
  /** -2 to 2. */
  readonly presencePenalty: number | null;
  /** Above 0; what logits of tokens that the output already has are divided by, or multiplied with where they are negative. */
  readonly repetitionPenalty: number | null;
}

/** The internal job of every text format. */
export interface TextRequest {
  /** `count` wants no output at all: only the tokens of the prompt are counted. */
  readonly task: 'generate' | 'count';
  readonly model: string;
  readonly stream: boolean;
  readonly maxTokens: number | null;
  readonly prompt: Prompt;
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** False: at most one call per answer. */
  readonly parallelToolCalls: boolean;
  readonly responseFormat: ResponseFormat;
  readonly sampling: Sampling;
  /** Log probabilities are wanted, with this many alternatives (0 to 20) each; null: they are not. */
  readonly logprobs: number | null;
  /** What the chat template is told, for models that can do either; null: the model's own default. */
  readonly thinking: boolean | null;
  /** Up to sixteen, none empty, none twice. */
  readonly stop: readonly string[];
}

/** The internal job of a request for vectors. */
export interface EmbeddingRequest {
  readonly task: 'embed';
  readonly model: string;
  /** Texts, or tokens of the model's own vocabulary. At least one, none empty. */
  readonly inputs: readonly (string | readonly number[])[];
  /** Numbers in each vector; null: as many as the model makes. */
  readonly dimensions: number | null;
  /** How the vectors are written: as JSON numbers, or as base64 of little-endian 32-bit floats. */
  readonly encoding: 'float' | 'base64';
}

/** Pixels as `<width>x<height>`; `auto`: the size that the model makes by itself; null: the client did not say. */
export type ImageSize = `${number}x${number}` | 'auto' | null;

/** The internal job of a request for images. */
export interface ImageRequest {
  readonly task: 'image';
  /** Null: the model that the job's context names. */
  readonly model: string | null;
  /** 1 to 32,000 characters, not all of them blank. */
  readonly prompt: string;
  /** 1 to 4. */
  readonly count: number;
  /** What that is for a model, `imageSizeOf` says. */
  readonly size: ImageSize;
  readonly format: 'png' | 'jpeg' | 'webp';
  /** `url`: the answer names the addresses that the job's context gives; `b64_json`: it holds the images. */
  readonly delivery: 'url' | 'b64_json';
  /** An integer from -2^63 to 2^63; engines with narrower seeds reduce it. Null: any. */
  readonly seed: number | null;
  /** More of it takes more steps; null: what the model does by itself. */
  readonly quality: 'low' | 'medium' | 'high' | null;
  /** Quality of JPEG and WebP in percent, 0 to 100; null: what the encoder does by itself. Says nothing for PNG. */
  readonly compression: number | null;
}
