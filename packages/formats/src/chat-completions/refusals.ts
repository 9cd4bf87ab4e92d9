/**
 * Known features of the format that are not served yet. They are refused by name: an answer that silently left them out
 * would look right and be wrong.
 */
import { RequestError } from '../errors.js';
import type { ChatCompletionRequest } from './schema.js';

/** Throws RequestError `unsupported_parameter` when a request needs a feature that is not served. */
export function refuseUnsupported(body: ChatCompletionRequest): void {
  refuseTools(body);
  if (isGiven(body.n) && body.n !== 1) refuse('n', 'n must be 1: one choice is generated per request.');
  if (isGiven(body.response_format) && body.response_format.type !== 'text') {
    refuse('response_format', 'response_format is not supported yet, other than {"type": "text"}.');
  }
  if (body.logprobs === true) refuse('logprobs', 'logprobs are not supported.');
  if (isGiven(body.top_logprobs) && body.top_logprobs > 0) refuse('top_logprobs', 'top_logprobs are not supported.');
  if (isGiven(body.logit_bias) && Object.keys(body.logit_bias).length > 0) refuse('logit_bias', 'logit_bias is not supported.');
  if (body.modalities?.some((modality) => modality !== 'text')) refuse('modalities', 'modalities other than text are not supported.');
  if (isGiven(body.audio)) refuse('audio', 'audio is not supported.');
  if (isGiven(body.web_search_options)) refuse('web_search_options', 'web_search_options are not supported.');
}

/** Tools that may not be called ("none") change nothing, so they pass. */
function refuseTools(body: ChatCompletionRequest): void {
  if (isFilled(body.tools) && body.tool_choice !== 'none') {
    refuse('tools', 'tools are not supported yet. Leave them out or set tool_choice to "none".');
  }
  if (isGiven(body.tool_choice) && body.tool_choice !== 'none' && body.tool_choice !== 'auto') {
    refuse('tool_choice', 'tool_choice other than "none" and "auto" is not supported yet.');
  }
  if (isFilled(body.functions) && body.function_call !== 'none') refuse('functions', 'functions are not supported.');
  if (isGiven(body.function_call) && body.function_call !== 'none' && body.function_call !== 'auto') {
    refuse('function_call', 'function_call other than "none" and "auto" is not supported.');
  }
}

/** Not null and not absent. */
export function isGiven<T>(value: T): value is NonNullable<T> {
  return value !== null && value !== undefined;
}

export function isFilled(list: readonly unknown[] | null | undefined): boolean {
  return isGiven(list) && list.length > 0;
}

export function refuse(param: string, message: string): never {
  throw new RequestError('unsupported_parameter', param, message);
}
