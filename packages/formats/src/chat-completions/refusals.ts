/** Unsupported features of the chat completion format. */
import { isGiven, refuse } from '../refusal.js';
import type { ChatCompletionRequest } from './schema.js';

/** Throws RequestError `unsupported_parameter` for an unsupported feature. */
export function refuseUnsupported(body: ChatCompletionRequest): void {
  if (isGiven(body.n) && body.n !== 1) refuse('n', 'n must be 1: one choice is generated per request.');
  if (body.modalities?.some((modality) => modality !== 'text')) refuse('modalities', 'modalities other than text are not supported.');
  if (isGiven(body.audio)) refuse('audio', 'audio is not supported.');
  if (isGiven(body.web_search_options)) refuse('web_search_options', 'web_search_options are not supported.');
}
