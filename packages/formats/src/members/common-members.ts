/** Request members that the member tables of several endpoints share. */
import type { Refusal } from './member-table.js';

/** Ignored members, without effect on the response: accounting, caching and routing parameters of other services. */
export const BOOKKEEPING = `metadata user safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options moderation
  client_metadata session_id conversation_id chat_id thread_id trace trace_id request_id rid priority cache_salt kv_transfer_params
  litellm_metadata litellm_call_id litellm_session_id litellm_trace_id drop_params num_retries timeout caching cache tags
  transforms route usage preset keep_alive ttl extra_headers`;

/** Ignored members: runtime hints for llama.cpp, vLLM and SGLang, and parameters of samplers that are off by default. */
export const ENGINE_HINTS = `cache_prompt id_slot slot_id timings_per_token return_progress samplers reasoning_format reasoning_in_content
  n_keep n_discard min_keep post_sampling_probs repeat_last_n penalize_nl response_fields parse_tool_calls parse_special add_special_tokens
  guided_decoding_backend backend_sampling mm_processor_kwargs media_io_kwargs separate_reasoning stream_reasoning
  dry_base dry_allowed_length dry_penalty_last_n dry_sequence_breakers mirostat_tau mirostat_eta xtc_threshold dynatemp_exponent`;

const STRUCTURE = 'Use response_format, or guided_regex or guided_choice.';
/** Names of the output token limit in the public formats. */
const TOKEN_LIMITS = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];

/** Table entry for a token limit under another format's name. Accepted only if another limit in the request has the same value. */
export function tokenLimitAlias(own: string): Refusal {
  return { allowedValues: [-1], sameAs: TOKEN_LIMITS, advice: `Use ${own}.` };
}

const LIMIT = tokenLimitAlias('max_tokens');
const STOP = { advice: 'Use stop.' };

/** Refused members: samplers and constraints of other servers that this network's engine does not support. */
export const UNSUPPORTED_ENGINE_PARAMETERS: Readonly<Record<string, Refusal>> = {
  grammar: { advice: STRUCTURE },
  guided_grammar: { advice: STRUCTURE },
  ebnf: { advice: STRUCTURE },
  lark_grammar: { advice: STRUCTURE },
  structural_tag: { advice: STRUCTURE },
  guided_whitespace_pattern: {},
  min_tokens: { allowedValues: [0] },
  min_length: { allowedValues: [0] },
  min_new_tokens: { allowedValues: [0] },
  n_predict: LIMIT,
  num_predict: LIMIT,
  max_length: LIMIT,
  max_new_tokens: LIMIT,
  stop_sequence: STOP,
  stop_sequences: STOP,
  stop_token_ids: STOP,
  ignore_eos: {},
  include_stop_str_in_output: {},
  no_stop_trim: {},
  allowed_token_ids: {},
  bad_words: {},
  banned_tokens: {},
  logits_processors: {},
  custom_logit_processor: {},
  use_beam_search: {},
  length_penalty: { allowedValues: [1] },
  early_stopping: {},
  do_sample: { allowedValues: [true], advice: 'Use temperature 0.' },
  random_seed: { advice: 'Use seed.' },
  typical_p: { allowedValues: [0, 1] },
  tfs_z: { allowedValues: [0, 1] },
  tfs: { allowedValues: [0, 1] },
  top_a: { allowedValues: [0] },
  top_n_sigma: { allowedValues: [-1, 0] },
  epsilon_cutoff: { allowedValues: [0] },
  eta_cutoff: { allowedValues: [0] },
  mirostat: { allowedValues: [0] },
  xtc_probability: { allowedValues: [0] },
  dry_multiplier: { allowedValues: [0] },
  dynatemp_range: { allowedValues: [0] },
  n_probs: { allowedValues: [0], advice: 'Use logprobs.' },
  t_max_predict_ms: { allowedValues: [0, -1] },
  prompt_logprobs: {},
  return_token_ids: {},
  return_tokens: {},
  return_hidden_states: {},
  vllm_xargs: {},
  return_tokens_as_token_ids: {},
  skip_special_tokens: { allowedValues: [true] },
  spaces_between_special_tokens: { allowedValues: [true] },
  truncate_prompt_tokens: { allowedValues: [-1] },
  lora: {},
  lora_path: {},
  adapter_id: {},
  options: { advice: 'Give parameters of sampling at the top level of the request.' },
  extra_body: { advice: 'Only SDKs have this argument. Put its members into the request itself.' },
};

/** Error message for an unknown member, in OpenAI's wording. */
export function unrecognized(path: string): string {
  return `Unrecognized request argument supplied: ${path}`;
}

/** Error message for an unknown member, in Anthropic's wording. */
export function notPermitted(path: string): string {
  return `${path}: Extra inputs are not permitted`;
}
