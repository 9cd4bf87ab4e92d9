/** `generationRequest` converts a parsed text request to the engine's request, with messages and tools as chat templates expect them. */
import type { ChatMessage, MessageContent, TextRequest, Tool, ToolCall } from '@inference/formats';
import type { GenerationRequest, PromptInput, PromptMessage, PromptPart, PromptTool, PromptToolCall } from '../../engine/messages.js';
import type { CompiledConstraint } from '../constraint/output-constraint.js';

/** `maxTokens`: limit of this generation. `seedOffset`: different for each generation of a job, so that choices differ. */
export function generationRequest(
  request: TextRequest,
  { maxTokens, cacheScope }: { readonly maxTokens: number; readonly cacheScope: string | null },
  constraint: CompiledConstraint | null,
  seedOffset = 0,
): GenerationRequest {
  const { sampling } = request;
  return {
    prompt: promptInput(request, constraint?.coversWholeOutput ?? false),
    grammar: constraint?.grammar ?? null,
    ...(constraint?.coversWholeOutput === false ? { permitsFreeText: true } : {}),
    logprobs: request.logprobs,
    maxTokens: request.task === 'count' ? 0 : maxTokens,
    cacheScope,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.topP,
      topK: sampling.topK,
      minP: sampling.minP,
      logitBias: sampling.logitBias,
      seed: sampling.seed === null ? null : offsetSeed(sampling.seed, seedOffset),
      frequencyPenalty: sampling.frequencyPenalty ?? 0,
      presencePenalty: sampling.presencePenalty ?? 0,
      repetitionPenalty: sampling.repetitionPenalty ?? 1,
    },
  };
}

/** The seed plus `offset`, modulo 2^32 as in engines. BigInt, because a sum of doubles above 2^53 is rounded. */
function offsetSeed(seed: number, offset: number): number {
  return offset === 0 ? seed : Number(BigInt.asUintN(32, BigInt(Math.trunc(seed)) + BigInt(offset)));
}

function promptInput({ prompt, tools, thinking }: TextRequest, skipsThinking: boolean): PromptInput {
  if (prompt.type === 'text') return prompt;
  return {
    type: 'chat',
    messages: prompt.messages.map(promptMessage),
    tools: tools.map(promptTool),
    continuesLast: prompt.continuesLast,
    // A grammar that covers the whole output permits no think section.
    thinking: skipsThinking ? false : thinking,
    skipsThinking,
  };
}

function promptMessage(message: ChatMessage): PromptMessage {
  switch (message.role) {
    case 'system':
    case 'user':
      return { role: message.role, content: promptContent(message.content) };
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
        // Templates have no field for a failed tool call, so a prefix tells the model.
        content: promptContent(message.content, message.isError ? 'Error: ' : ''),
        tool_call_id: message.toolCallId,
        ...(message.name === null ? {} : { name: message.name }),
      };
    default:
      return message satisfies never;
  }
}

function promptContent(content: MessageContent, prefix = ''): PromptMessage['content'] {
  if (typeof content === 'string') return prefix + content;
  const parts = content.map((part): PromptPart => {
    if (part.type === 'text') return part;
    const { base64, field } = part.image;
    return { type: 'image', data: Buffer.from(base64, 'base64'), field };
  });
  return prefix === '' ? parts : [{ type: 'text', text: prefix }, ...parts];
}

function promptToolCall(call: ToolCall): PromptToolCall {
  return { id: call.id, type: 'function', function: { name: call.name, arguments: objectOrText(call.arguments) } };
}

/** Drops `$schema`: the dialect of a schema means nothing to a model, and small models copy the member into calls. */
function promptTool({ name, description, parameters: { $schema: _, ...parameters } }: Tool): PromptTool {
  return { type: 'function', function: { name, description: description ?? '', parameters } };
}

/** The parsed object, as templates expect arguments; other values stay text. */
function objectOrText(json: string): unknown {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : json;
  } catch {
    return json;
  }
}
