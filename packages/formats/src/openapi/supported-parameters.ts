/**
 * Lists the supported request parameters of a model, for `supported_parameters` of the model list (as in OpenRouter).
 *
 * The member tables decide which of OpenRouter's parameter names are supported.
 */
import type { ModelType } from '@inference/protocol';
import { CHAT_MEMBERS } from '../chat-completions/members.js';
import { EMBEDDINGS_MEMBERS } from '../embeddings/members.js';
import { IMAGES_MEMBERS } from '../images/members.js';
import type { MemberTable } from '../members/member-table.js';

/** OpenRouter's parameter names. Leaves out members that the parser reads only to refuse, such as `web_search_options`. */
const TEXT_NAMES = `temperature top_p top_k min_p frequency_penalty presence_penalty repetition_penalty max_tokens max_completion_tokens
  logit_bias logprobs top_logprobs seed stop response_format structured_outputs tools tool_choice parallel_tool_calls`;
/** Parameters that have an effect only on models with think segments. */
const THINKING_NAMES = 'reasoning reasoning_effort include_reasoning';
const EMBEDDING_NAMES = 'dimensions encoding_format';
const IMAGE_NAMES = 'n size quality seed response_format output_format output_compression';

const readOf = ({ read }: MemberTable, names: string): readonly string[] => names.split(/\s+/).filter((name) => read.has(name));

const TEXT = readOf(CHAT_MEMBERS, TEXT_NAMES);
const THINKING = [...TEXT, ...readOf(CHAT_MEMBERS, THINKING_NAMES)];
const EMBEDDING = readOf(EMBEDDINGS_MEMBERS, EMBEDDING_NAMES);
const IMAGE = readOf(IMAGES_MEMBERS, IMAGE_NAMES);

/** Supported parameters for a model of this type. `thinks`: the model generates think segments. */
export function supportedParameters(type: ModelType, thinks: boolean): readonly string[] {
  switch (type) {
    case 'text':
      return thinks ? THINKING : TEXT;
    case 'embedding':
      return EMBEDDING;
    case 'image':
      return IMAGE;
    default:
      return type satisfies never;
  }
}
