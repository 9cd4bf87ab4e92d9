/** OpenAPI documentation of the inference endpoints, built from the same schemas that validate requests. */
import type { Endpoint } from '@inference/protocol';
import { ChatCompletionRequestSchema } from '../chat-completions/schema.js';
import { CompletionRequestSchema } from '../completions/schema.js';
import { EmbeddingsRequestSchema } from '../embeddings/schema.js';
import type { ErrorCode } from '../errors/error-table.js';
import { ImagesRequestSchema } from '../images/schema.js';
import { CountTokensRequestSchema, MessagesRequestSchema } from '../messages/schema.js';
import { ResponsesRequestSchema } from '../responses/schema.js';
import { documentedErrors, type ErrorSchemaName } from './error-responses.js';
import { RESPONSE_SCHEMAS } from './response-schemas.js';

interface Operation {
  readonly summary: string;
  readonly request: keyof typeof REQUEST_SCHEMAS;
  readonly alternative?: keyof typeof REQUEST_SCHEMAS;
  readonly answer: keyof typeof RESPONSE_SCHEMAS;
  /** Description of a streamed response; null without streaming. */
  readonly stream: string | null;
  readonly errors: ErrorSchemaName;
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

const PLACEMENT_HEADERS = {
  'X-Inference-Trust': {
    type: 'string',
    enum: ['self_signed', 'hardware'],
    description: 'Minimum trust level of the provider. Default: the minimum of the model.',
  },
  'X-Inference-Provider-Id': {
    type: 'string',
    pattern: '^[0-9a-f]{32}$',
    description: 'Id of the only provider that may answer: 32 digits of lowercase hexadecimal.',
  },
};

const SIGNATURE_HEADER = {
  'X-Inference-Signature': {
    type: 'string',
    enum: ['event', 'comment'],
    description:
      'How a stream carries its signature, in formats with an event for it. Default: the setting of the API key, else event. ' +
      'Clients that take usage from the last event, such as chat.completions.stream of the Python SDK, need comment.',
  },
};

const IGNORED_HEADER = {
  'X-Inference-Ignored': { type: 'string', description: 'Members and tools of the request that have no effect, separated by commas.' },
};

const ROUTE_HEADERS = {
  'X-Inference-Routing': {
    type: 'string',
    description:
      'Routing preferences that led to the provider, such as `order=0, min_trust=hardware`. Only with `provider` in the request.',
  },
  'X-Inference-Fallback-Model': { type: 'string', description: 'The model of `models` that answered instead of `model`.' },
  'X-Inference-Fallback-Reason': { type: 'string', description: 'Code of the reason why `model` did not answer.' },
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
    summary: 'Computes embeddings of texts. Only the tokens of the texts are billed.',
    request: 'EmbeddingsRequest',
    answer: 'Embeddings',
    stream: null,
    errors: 'OpenAiError',
  },
  '/v1/images/generations': {
    summary: 'Generates images. Waits for an image provider and responds when the images are complete.',
    request: 'ImagesRequest',
    answer: 'Images',
    stream: null,
    errors: 'OpenAiError',
  },
};

/** Schemas of requests, responses and errors, for `components.schemas` of the OpenAPI document. */
export const INFERENCE_SCHEMAS = { ...REQUEST_SCHEMAS, ...RESPONSE_SCHEMAS };

/** Fastify route schema that documents one inference endpoint. `$ref` values point to {@link INFERENCE_SCHEMAS}. */
export function inferenceRouteSchema(endpoint: Endpoint) {
  const { summary, request, alternative, answer, stream, errors } = OPERATIONS[endpoint];
  const body = alternative === undefined ? reference(request) : { anyOf: [reference(request), reference(alternative)] };
  const answers = alternative === undefined ? reference(answer) : { anyOf: [reference(answer), reference('ChatCompletion')] };
  const events = stream === null ? {} : { 'text/event-stream': { schema: { type: 'string', description: stream } } };
  return {
    summary,
    tags: ['Inference'],
    headers: { type: 'object', properties: stream === null ? PLACEMENT_HEADERS : { ...PLACEMENT_HEADERS, ...SIGNATURE_HEADER } },
    body,
    response: {
      200: {
        description: 'The response.',
        headers: readsRouting(endpoint) ? { ...IGNORED_HEADER, ...ROUTE_HEADERS } : IGNORED_HEADER,
        content: { 'application/json': { schema: answers }, ...events },
      },
      ...documentedErrors(errorsOf(endpoint), errors, REQUEST_ERRORS),
    },
  };
}

function readsRouting(endpoint: Endpoint): boolean {
  return endpoint !== '/v1/embeddings' && endpoint !== '/v1/images/generations';
}

/** Errors that every inference endpoint may return, in order of status. */
const COMMON_ERRORS = [
  'invalid_json',
  'invalid_request',
  'unsupported_parameter',
  'unknown_parameter',
  'missing_api_key',
  'invalid_api_key',
  'forbidden',
  'account_suspended',
  'model_not_found',
  'body_too_slow',
  'body_too_large',
  'not_json',
  'encoding_unsupported',
  'rate_limit_exceeded',
  'internal',
  'transfer_coding_unsupported',
  'provider_failed',
  'bad_signature',
  'no_provider',
  'provider_not_available',
  'overloaded',
  'shutting_down',
  'provider_timeout',
] as const satisfies readonly ErrorCode[];

/** Details of error examples for inference endpoints. */
const REQUEST_ERRORS = { invalid_request: { message: 'temperature must be a number between 0 and 2.', param: 'temperature' } } as const;

function errorsOf(endpoint: Endpoint): readonly ErrorCode[] {
  const isImage = endpoint === '/v1/images/generations';
  return [
    ...COMMON_ERRORS,
    ...(isImage ? (['images_unavailable'] as const) : (['context_length_exceeded'] as const)),
    ...(endpoint === '/v1/responses' ? (['previous_response_not_found'] as const) : []),
    ...(endpoint === '/v1/messages/count_tokens' ? [] : (['insufficient_quota', 'key_budget_exceeded', 'billing_unavailable'] as const)),
  ];
}

function reference(name: string) {
  return { $ref: `#/components/schemas/${name}` };
}
