/** Features of the chat completion format that are not served. */
import { isFilled, isGiven, refuse } from '../refusal.js';
import type { ChatCompletionRequest } from './schema.js';

/** Throws RequestError `unsupported_parameter` when a request needs a feature that is not served. */
export function refuseUnsupported(body: ChatCompletionRequest): void {
  if (isGiven(body.n) && body.n !== 1) refuse('n', 'n must be 1: one choice is generated per request.');
  if (isFilled(body.functions) && body.function_call !== 'none') refuse('functions', 'functions are not supported. Use tools.');
  if (isGiven(body.function_call) && body.function_call !== 'none' && body.function_call !== 'auto') {
    refuse('function_call', 'function_call other than "none" and "auto" is not supported. Use tools.');
  }
  if (body.modalities?.some((modality) => modality !== 'text')) refuse('modalities', 'modalities other than text are not supported.');
  if (isGiven(body.audio)) refuse('audio', 'audio is not supported.');
  if (isGiven(body.web_search_options)) refuse('web_search_options', 'web_search_options are not supported.');
}
