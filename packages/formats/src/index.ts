/**
 * Public HTTP formats: request parsers, internal requests, output filters, response renderers, errors and OpenAPI.
 *
 * Pure: uses no Node modules, files, sockets or processes.
 */

export { DEFAULT_MAX_TOKENS, MAX_CHOICES } from './choices.js';
export * from './console/index.js';
export { type EmbeddingsOutput, embeddingsBody } from './embeddings/answer.js';
export * from './errors/anthropic-error.js';
export * from './errors/error-table.js';
export * from './errors/errors.js';
export { jobFailureError } from './errors/job-failure-error.js';
export * from './errors/oauth-error.js';
export * from './errors/open-ai-error.js';
export * from './errors/problem-error.js';
export * from './format.js';
export * from './formats.js';
export * from './images/answer.js';
export * from './images/size.js';
export { imageTypeOf } from './input-images/image-header.js';
export {
  COULD_NOT_PROCESS,
  checkInputImage,
  type FetchedImage,
  type ImageUrlResolver,
} from './input-images/image-reader.js';
export { readJsonBody } from './json/json-body.js';
export * from './json/json-value.js';
export type { UnknownMembers } from './members/member-table.js';
export { nearestNames } from './members/nearest-name.js';
export { contentText, imagesOf, imagesOfRequest, textBytesOf, withFetchedImages } from './message-content.js';
export { documentedErrors } from './openapi/error-responses.js';
export { INFERENCE_SCHEMAS, inferenceRouteSchema } from './openapi/inference-operations.js';
export { EXAMPLE_MODEL, IMAGE_PROMPT_EXAMPLES, REQUEST_EXAMPLES } from './openapi/request-examples.js';
export { supportedParameters } from './openapi/supported-parameters.js';
export { DEFAULT_THINK_TAGS, DEFAULT_TOOL_CALL_TAGS } from './output/default-tags.js';
export * from './output/output-filter.js';
export type { ThinkTags } from './output/think-filter.js';
export type { ToolCallOptions, ToolCallTags } from './output/tool-call-filter.js';
export { Transcript, type TranscriptItem } from './output/transcript.js';
export * from './output-event.js';
export * from './prompt-prefixes.js';
export * from './public/model-statistics.js';
export * from './public/network-status.js';
export * from './public/statistics.js';
export * from './request.js';
export type { MaxPrice, RoutingPreferences } from './routing.js';
export { DEFAULT_TEMPERATURE } from './sampling.js';
export { schemaCheck } from './schema-check.js';
export * from './sse.js';
