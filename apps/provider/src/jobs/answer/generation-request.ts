/** From the internal job of the formats to what the engine is asked, with messages and tools as chat templates know them. */
import type { ChatMessage, TextRequest, Tool, ToolCall } from '@inference/formats';
import type { GenerationRequest, PromptInput, PromptMessage, PromptTool, PromptToolCall } from '../../engine/messages.js';
import type { MadeForm } from '../constraint/output-constraint.js';

/** `maxTokens` and `cacheScope` are those of the job's context. `attempt`: counts from 0 where an answer is tried again. */
export function generationRequest(
  request: TextRequest,
  { maxTokens, cacheScope }: { readonly maxTokens: number; readonly cacheScope: string | null },
  form: MadeForm | null,
  attempt = 0,
): GenerationRequest {
  const { sampling } = request;
  return {
    prompt: promptInput(request, form?.isWhole ?? false),
    grammar: form?.grammar ?? null,
    logprobs: request.logprobs,
    maxTokens: request.task === 'count' ? 0 : maxTokens,
    cacheScope,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: sampling.topK,
      minP: sampling.minP,
      logitBias: sampling.logitBias,
      seed: sampling.seed === null ? null : sampling.seed + attempt,
      frequencyPenalty: sampling.frequencyPenalty ?? 0,
      presencePenalty: sampling.presencePenalty ?? 0,
      repetitionPenalty: sampling.repetitionPenalty ?? 1,
    },
  };
}

function promptInput({ prompt, tools, thinking }: TextRequest, answersAtOnce: boolean): PromptInput {
  if (prompt.type === 'text') return prompt;
  return {
    type: 'chat',
    messages: prompt.messages.map(promptMessage),
    tools: tools.map(promptTool),
    continuesLast: prompt.continuesLast,
    // A grammar has no place for thoughts.
    thinking: answersAtOnce ? false : thinking,
    answersAtOnce,
  };
}

function promptMessage(message: ChatMessage): PromptMessage {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: message.content };
    case 'assistant':
      return {
        role: 'assistant',
        content: message.content,
        ...(message.reasoning === null ? {} : { reasoning_content: message.reasoning }),
        ...(message.toolCalls.length === 0 ? {} : { tool_calls: message.toolCalls.map(promptToolCall) }),
      };
    case 'tool':
      return {
        role: 'tool',
        // Templates have no place for a failure; in words the model can read it.
        content: message.isError ? `Error: ${message.content}` : message.content,
        tool_call_id: message.toolCallId,
        ...(message.name === null ? {} : { name: message.name }),
      };
    default:
      return message satisfies never;
  }
}

function promptToolCall(call: ToolCall): PromptToolCall {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: objectOrText(call.arguments) } };
}

/** `$schema` says which dialect a schema is written in: to a model nothing, and a small one takes it for what it should fill in. */
function promptTool({ name, description, parameters: { $schema: _, ...parameters } }: Tool): PromptTool {
  return { type: 'function', function: { name, description: description ?? '', parameters } };
}

/** Templates expect arguments as an object; what is none goes in as it was written. */
function objectOrText(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : json;
  } catch {
    return json;
  }
}
