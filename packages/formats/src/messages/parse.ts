/** Parses a Messages or token counting request into the internal `TextRequest` and the parameters for routing. */
import { ERRORS } from '../errors/error-table.js';
import { RequestError } from '../errors/errors.js';
import { isFilled, isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import { stopOf } from '../fields.js';
import { type AnswerFormat, answerWithoutEvents, type ParsedRequest, type ParseOptions, type PlainRenderer } from '../format.js';
import { ImageReader } from '../input-images/image-reader.js';
import { readJsonBody } from '../json/json-body.js';
import { isJsonObject } from '../json/json-value.js';
import { bodyReader } from '../members/body-reader.js';
import { notPermitted } from '../members/common-members.js';
import type { OutputEvent } from '../output-event.js';
import type { ResponseFormat, TextRequest, ToolChoice } from '../request.js';
import { routingOf } from '../routing.js';
import { DEFAULT_TEMPERATURE, samplingOf } from '../sampling.js';
import { choiceAmong, requireDistinctNames } from '../tools.js';
import { messagesAnswer } from './answer.js';
import { clientTool, isToolSearch } from './client-tools.js';
import { type OrphanedResults, promptOf } from './conversation.js';
import { COUNT_TOKENS_MEMBERS, MESSAGES_MEMBERS } from './members.js';
import { type CountTokensRequest, CountTokensRequestSchema, type MessagesRequest, MessagesRequestSchema } from './schema.js';
import { toolsAfterChanges } from './tool-changes.js';

/** Renders the response to a token counting request, which is never streamed. */
const countAnswer: AnswerFormat = { ...answerWithoutEvents('count_'), plain: () => new CountRenderer() };

class CountRenderer implements PlainRenderer {
  #promptTokens: number | null = null;

  add(...events: readonly OutputEvent[]): void {
    for (const event of events) {
      if (event.type === 'start') this.#promptTokens = event.promptTokens;
      else if (event.type === 'finish') this.#promptTokens = event.usage.prompt_tokens;
    }
  }

  body(): string {
    if (this.#promptTokens === null) throw new Error('the prompt has not been counted');
    return JSON.stringify({ input_tokens: this.#promptTokens });
  }
}

const readMessages = bodyReader(MessagesRequestSchema, MESSAGES_MEMBERS, notPermitted);
const readCount = bodyReader(CountTokensRequestSchema, COUNT_TOKENS_MEMBERS, notPermitted);

/** Parses the body of a request to `/v1/messages`. Throws RequestError. */
export function parseMessages(bytes: Uint8Array, options?: ParseOptions): ParsedRequest {
  const { body, ignored } = readMessages(readJsonBody(bytes), options);
  if (isPresent(body.compaction)) rejectUnsupported('compaction', 'compaction is not supported. Ask for a summary in a message.');
  const stream = body.stream ?? false;
  const request: TextRequest = {
    task: 'generate',
    ...sharedOf(body, options, 'reject'),
    stream,
    maxTokens: body.max_tokens,
    choices: 1,
    sampling: samplingOf(body),
    stop: stopOf(body.stop_sequences),
  };
  const { model, maxTokens } = request;
  return {
    request,
    params: { endpoint: '/v1/messages', model, stream, maxTokens, providerSerial: body.provider_serial ?? null, ...routingOf(body) },
    answer: messagesAnswer({ showReasoning: showsThinking(body), usesCacheControl: usesCacheControl(body) }),
    ignored: [...ignored, ...ignoredTools(body), ...ignoredCitations(body)],
  };
}

/** Parses the body of a request to `/v1/messages/count_tokens`. Throws RequestError. */
export function parseCountTokens(bytes: Uint8Array, options?: ParseOptions): ParsedRequest {
  const { body, ignored } = readCount(readJsonBody(bytes), options);
  const request: TextRequest = {
    task: 'count',
    // Clients also count parts of a conversation, which may lack the call of a result.
    ...sharedOf(body, options, 'accept'),
    stream: false,
    // Counting generates no tokens, but a job context requires `max_tokens` of at least 1.
    maxTokens: 1,
    choices: 1,
    sampling: samplingOf({ temperature: DEFAULT_TEMPERATURE }),
    stop: [],
  };
  const { model, maxTokens } = request;
  const providerSerial = body.provider_serial ?? null;
  return {
    request,
    params: { endpoint: '/v1/messages/count_tokens', model, stream: false, maxTokens, providerSerial, ...routingOf(body) },
    answer: countAnswer,
    ignored: [...ignored, ...ignoredTools(body), ...ignoredCitations(body)],
  };
}

/** The common parts of Messages and token counting requests, which determine the token count of the prompt. */
function sharedOf(body: CountTokensRequest, options: ParseOptions | undefined, orphanedResults: OrphanedResults) {
  if (isFilled(body.mcp_servers)) rejectUnsupported('mcp_servers', 'mcp_servers are not supported: no MCP server is contacted.');
  if (isPresent(body.container)) rejectUnsupported('container', 'container is not supported.');
  if (isPresent(body.thread)) throw new RequestError('thread_unsupported', 'thread', ERRORS.thread_unsupported.message);
  const tools = toolsAfterChanges(body.tools ?? [], body.messages).flatMap(({ tool, path }) => clientTool(tool, path));
  requireDistinctNames(tools);
  return {
    model: body.model,
    prompt: promptOf(body, new ImageReader(options?.imageAt), orphanedResults),
    tools,
    toolChoice: choiceAmong(tools, choiceOf(body)),
    parallelToolCalls: !(body.tool_choice?.disable_parallel_tool_use ?? false),
    responseFormat: responseFormatOf(body),
    logprobs: null,
    thinking: body.thinking?.type === 'disabled' ? false : null,
  } as const;
}

/** Citations have no effect: their path, if the request asks for any. */
function ignoredCitations({ messages }: CountTokensRequest): readonly string[] {
  return messages.some(({ content }) => asksForCitations(content)) ? ['messages[].content[].citations'] : [];
}

function asksForCitations(content: unknown): boolean {
  if (!Array.isArray(content)) return false;
  return content.some(
    (block: unknown) =>
      isJsonObject(block) && ((isJsonObject(block.citations) && block.citations.enabled === true) || asksForCitations(block.content)),
  );
}

function ignoredTools({ tools }: CountTokensRequest): readonly string[] {
  return (tools ?? []).flatMap((tool, index) => (isToolSearch(tool) ? [`tools[${index}] (${tool.type})`] : []));
}

function choiceOf({ tool_choice: choice }: CountTokensRequest): ToolChoice {
  if (!isPresent(choice)) return { type: 'auto' };
  switch (choice.type) {
    case 'auto':
      return { type: 'auto' };
    case 'none':
      return { type: 'none' };
    case 'any':
      return { type: 'required' };
    case 'tool':
      return { type: 'named', name: choice.name ?? rejectInvalid('tool_choice.name', 'tool_choice.name is required.') };
    default:
      return choice.type satisfies never;
  }
}

function responseFormatOf(body: CountTokensRequest): ResponseFormat {
  const [format, path] = isPresent(body.output_config?.format)
    ? [body.output_config.format, 'output_config.format']
    : [body.output_format, 'output_format'];
  if (!isPresent(format)) return { type: 'text' };
  if (isPresent(body.output_format) && JSON.stringify(body.output_format) !== JSON.stringify(format))
    rejectInvalid('output_format', 'output_config.format and output_format differ. Give only one of them.');
  if (format.type !== 'json_schema') return rejectUnsupported(path, `${path} must be of type "json_schema".`);
  return {
    type: 'json_schema',
    name: 'output',
    schema: format.schema ?? rejectInvalid(`${path}.schema`, `${path}.schema is required.`),
    strict: true,
  };
}

/** Whether the client wants thinking blocks: thinking is enabled, and its display is not omitted. */
function showsThinking({ thinking }: MessagesRequest): boolean {
  return isPresent(thinking) && thinking.type !== 'disabled' && thinking.display !== 'omitted';
}

function usesCacheControl(body: MessagesRequest): boolean {
  return (
    isMarked(body) ||
    (body.tools ?? []).some(isMarked) ||
    isAnyBlockMarked(body.system) ||
    body.messages.some((message) => isMarked(message) || isAnyBlockMarked(message.content))
  );
}

/** Whether a block has `cache_control`. Blocks such as tool results contain further blocks. */
function isAnyBlockMarked(content: unknown): boolean {
  if (!Array.isArray(content)) return false;
  return content.some((block: unknown) => isMarked(block) || isAnyBlockMarked((block as { content?: unknown } | null)?.content));
}

function isMarked(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'cache_control' in value && value.cache_control != null;
}
