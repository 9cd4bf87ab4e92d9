/**
 * What a chat template has to be given so that nothing of a conversation is lost or refused: families differ in where a system
 * message may stand, whether turns have to alternate, and how tool calls are written. It is found out once for each model, by
 * having the template render a few made-up conversations.
 */
import type { PromptMessage, PromptTool } from '../../messages.js';

export interface TemplateNeeds {
  /** Where a system message may stand; `nowhere`: its words go into the first turn of the user. */
  readonly system: 'anywhere' | 'first' | 'nowhere';
  /** The first turn is the user's. */
  readonly userFirst: boolean;
  /** User and assistant take turns. */
  readonly alternating: boolean;
  /** `text`: the template does not tell of tools, calls and results in the form in which calls are read from the output. */
  readonly tools: 'template' | 'text';
}

/** Throws what the template throws. */
export type Render = (messages: readonly PromptMessage[], tools: readonly PromptTool[]) => string;

/** Numbers, because they come through every filter for texts as they are, and stand in no template. */
const MARK = { system: '71820459001', later: '71820459002', user: '71820459003', value: '71820459004', result: '71820459005' } as const;
const TOOL_NAME = 'probe_71820459006';

const SYSTEM: PromptMessage = { role: 'system', content: MARK.system };
const LATER: PromptMessage = { role: 'system', content: MARK.later };
const USER: PromptMessage = { role: 'user', content: MARK.user };
const ASSISTANT: PromptMessage = { role: 'assistant', content: 'Yes.' };
const CALL: PromptMessage = {
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: TOOL_NAME, arguments: { value: MARK.value } } }],
};
const RESULT: PromptMessage = { role: 'tool', content: MARK.result, tool_call_id: 'call_1', name: TOOL_NAME };
const TOOL: PromptTool = {
  type: 'function',
  function: { name: TOOL_NAME, description: '', parameters: { type: 'object', properties: { value: { type: 'string' } } } },
};
/** A call as it is read from the output. */
const READABLE_CALL = new RegExp(`<tool_call>\\s*\\{\\s*"name":\\s*"${TOOL_NAME}",\\s*"arguments":\\s*\\{\\s*"value":\\s*"${MARK.value}"`);

export function templateNeeds(render: Render): TemplateNeeds {
  const renders = (messages: readonly PromptMessage[], tools: readonly PromptTool[] = []): string | null => {
    try {
      return render(messages, tools);
    } catch {
      return null;
    }
  };
  const tells = (rendered: string | null, ...marks: readonly string[]): boolean =>
    rendered !== null && marks.every((mark) => rendered.includes(mark));
  const withCall = renders([USER, CALL, RESULT], [TOOL]);
  return {
    system: tells(renders([SYSTEM, USER, ASSISTANT, LATER, USER]), MARK.system, MARK.later)
      ? 'anywhere'
      : tells(renders([SYSTEM, USER]), MARK.system)
        ? 'first'
        : 'nowhere',
    userFirst: renders([ASSISTANT, USER]) === null || renders([SYSTEM]) === null,
    alternating: renders([USER, USER]) === null,
    tools:
      tells(renders([USER], [TOOL]), TOOL_NAME) && tells(withCall, MARK.result) && READABLE_CALL.test(withCall ?? '') ? 'template' : 'text',
  };
}
