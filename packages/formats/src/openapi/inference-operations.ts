/**
 * The description of the inference endpoints (OpenAPI 3.1), from the schemas that check requests. Who serves more adds the
 * paths and schemas of it.
 */
import type { Endpoint } from '@inference/protocol';
import { ChatCompletionRequestSchema } from '../chat-completions/schema.js';
import { CompletionRequestSchema } from '../completions/schema.js';
import { EmbeddingsRequestSchema } from '../embeddings/schema.js';
import { ERRORS } from '../errors/error-table.js';
import { ImagesRequestSchema } from '../images/schema.js';
import { CountTokensRequestSchema, MessagesRequestSchema } from '../messages/schema.js';
import { ResponsesRequestSchema } from '../responses/schema.js';
import { RESPONSE_SCHEMAS } from './response-schemas.js';

export interface OpenApiOptions {
  /** Version of the service, such as `0.1.0`. */
  readonly version: string;
  /** Path items beside those of inference, by path. */
  readonly paths?: Readonly<Record<string, object>>;
  /** Schemas that they refer to, by name. */
  readonly schemas?: Readonly<Record<string, object>>;
}

interface Operation {
  readonly summary: string;
  readonly request: keyof typeof REQUEST_SCHEMAS;
  readonly alternative?: keyof typeof REQUEST_SCHEMAS;
  readonly answer: keyof typeof RESPONSE_SCHEMAS;
  /** What an answer says that streams; null where none does. */
  readonly stream: string | null;
  readonly errors: 'OpenAiError' | 'AnthropicError';
}

const REQUEST_SCHEMAS = {
  ChatCompletionRequest: ChatCompletionRequestSchema,
  CompletionRequest: CompletionRequestSchema,
  ResponsesRequest: ResponsesRequestSchema,
  MessagesRequest: MessagesRequestSchema,
  CountTokensRequest: CountTokensRequestSchema,
  EmbeddingsRequest: EmbeddingsRequestSchema,
  ImagesRequest: ImagesRequestSchema,
};

const TRUST_HEADER = {
  name: 'X-Inference-Trust',
  in: 'header',
  description: 'Lowest trust level of the machine that may answer; left out, what the model asks for.',
  schema: { type: 'string', enum: ['self_signed', 'hardware'] },
};

const SIGNATURE_HEADER = {
  name: 'X-Inference-Signature',
  in: 'header',
  description: 'How a stream carries its signature, where the format has an event for it; left out, what the key asks for, or an event.',
  schema: { type: 'string', enum: ['event', 'comment'] },
};

const IGNORED_HEADER = {
  description: 'Members and tools of the request that have no effect, separated by commas.',
  schema: { type: 'string' },
};

const PROVIDER_ID_HEADER = {
  name: 'X-Inference-Provider-Id',
  in: 'header',
  description: 'Id of the only provider that may answer: 32 digits of lowercase hexadecimal.',
  schema: { type: 'string', pattern: '^[0-9a-f]{32}$' },
};

const IN_COMMENT = 'The signature follows in a comment that begins with ": inference-signature ".';

const OPERATIONS: Readonly<Record<Endpoint, Operation>> = {
  '/v1/chat/completions': {
    summary: 'Continues a conversation.',
    request: 'ChatCompletionRequest',
    answer: 'ChatCompletion',
    stream: 'Events of ChatCompletionChunk; the last one carries the signature, and then comes [DONE].',
    errors: 'OpenAiError',
  },
  '/v1/completions': {
    summary: 'Continues a text (legacy).',
    request: 'CompletionRequest',
    answer: 'Completion',
    stream: 'Events of Completion; the last one carries the signature, and then comes [DONE].',
    errors: 'OpenAiError',
  },
  '/v1/responses': {
    summary: 'Continues a conversation (Responses format). A body with messages is answered as a chat completion.',
    request: 'ResponsesRequest',
    alternative: 'ChatCompletionRequest',
    answer: 'Response',
    stream: `Events from response.created to response.completed or response.incomplete. ${IN_COMMENT} Then comes [DONE].`,
    errors: 'OpenAiError',
  },
  '/v1/messages': {
    summary: 'Continues a conversation (Messages format).',
    request: 'MessagesRequest',
    answer: 'Message',
    stream: `Events from message_start to message_stop. ${IN_COMMENT}`,
    errors: 'AnthropicError',
  },
  '/v1/messages/count_tokens': {
    summary: 'Counts the tokens of a prompt. Nothing is generated or billed.',
    request: 'CountTokensRequest',
    answer: 'TokenCount',
    stream: null,
    errors: 'AnthropicError',
  },
  '/v1/embeddings': {
    summary: 'Makes vectors of texts, with an embedding model. Only the tokens of the texts are billed.',
    request: 'EmbeddingsRequest',
    answer: 'Embeddings',
    stream: null,
    errors: 'OpenAiError',
  },
  '/v1/images/generations': {
    summary: 'Makes images of a prompt, with an image model. Waits for a machine that can, and answers when the images are made.',
    request: 'ImagesRequest',
    answer: 'Images',
    stream: null,
    errors: 'OpenAiError',
  },
};

/** The document, ready for `JSON.stringify`. */
export function openApiDocument(options: OpenApiOptions) {
  return {
    openapi: '3.1.0',
    info: { title: 'Inference Gateway', version: options.version },
    security: [{ bearer: [] }, { apiKey: [] }],
    paths: {
      ...Object.fromEntries(Object.entries(OPERATIONS).map(([path, operation]) => [path, { post: operationOf(operation) }])),
      ...options.paths,
    },
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
      },
      schemas: { ...REQUEST_SCHEMAS, ...RESPONSE_SCHEMAS, ...options.schemas },
    },
  };
}

function operationOf({ summary, request, alternative, answer, stream, errors }: Operation) {
  const schema = alternative === undefined ? reference(request) : { anyOf: [reference(request), reference(alternative)] };
  const answers = alternative === undefined ? reference(answer) : { anyOf: [reference(answer), reference('ChatCompletion')] };
  const events = stream === null ? {} : { 'text/event-stream': { schema: { type: 'string', description: stream } } };
  const json = { 'application/json': { schema: reference(errors) } };
  return {
    summary,
    parameters: stream === null ? [TRUST_HEADER, PROVIDER_ID_HEADER] : [TRUST_HEADER, PROVIDER_ID_HEADER, SIGNATURE_HEADER],
    requestBody: { required: true, content: { 'application/json': { schema } } },
    responses: {
      200: {
        description: 'The answer.',
        headers: { 'X-Inference-Ignored': IGNORED_HEADER },
        content: { 'application/json': { schema: answers }, ...events },
      },
      ...Object.fromEntries(statuses(errors).map((status) => [status, { description: 'An error.', content: json }])),
    },
  };
}

function statuses(errors: Operation['errors']): readonly number[] {
  const rows: readonly { readonly status: number; readonly anthropicStatus?: number }[] = Object.values(ERRORS);
  return [...new Set(rows.map((row) => (errors === 'AnthropicError' ? (row.anthropicStatus ?? row.status) : row.status)))];
}

function reference(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}
