/** Builds the members of a response object that repeat the request's parameters, with the values that took effect. */
import type { ResponseFormat, TextRequest, Tool, ToolChoice } from '../request.js';
import type { ResponsesRequest } from './schema.js';

/** `store` is always false, because responses are not stored. */
export function echoOf(body: ResponsesRequest, request: TextRequest) {
  return {
    previous_response_id: null,
    instructions: body.instructions ?? null,
    max_output_tokens: request.maxTokens,
    max_tool_calls: body.max_tool_calls ?? null,
    tools: request.tools.map(toolEcho),
    tool_choice: choiceEcho(request.toolChoice),
    parallel_tool_calls: request.parallelToolCalls,
    text: { format: formatEcho(request.responseFormat, body), ...(body.text?.verbosity ? { verbosity: body.text.verbosity } : {}) },
    reasoning: { effort: body.reasoning?.effort ?? null, summary: body.reasoning?.summary ?? null },
    temperature: request.sampling.temperature,
    top_p: body.top_p ?? 1,
    presence_penalty: request.sampling.presencePenalty ?? 0,
    frequency_penalty: request.sampling.frequencyPenalty ?? 0,
    top_logprobs: request.logprobs ?? 0,
    truncation: 'disabled',
    store: false,
    background: false,
    service_tier: 'default',
    metadata: body.metadata ?? {},
    user: body.user ?? null,
    safety_identifier: body.safety_identifier ?? null,
    prompt_cache_key: body.prompt_cache_key ?? null,
  };
}
export type ResponsesEcho = ReturnType<typeof echoOf>;

function toolEcho({ name, description, parameters, strict }: Tool) {
  return { type: 'function', name, description, parameters, strict };
}

function choiceEcho(choice: ToolChoice) {
  return choice.type === 'named' ? { type: 'function', name: choice.name } : choice.type;
}

function formatEcho(format: ResponseFormat, body: ResponsesRequest) {
  if (format.type !== 'json_schema') return { type: format.type };
  const { name, schema, strict } = format;
  return { type: 'json_schema', name, description: body.text?.format?.description ?? null, schema, strict };
}
