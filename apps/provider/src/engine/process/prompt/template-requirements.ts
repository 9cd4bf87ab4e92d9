/** `templateRequirements` finds a chat template's rules for system messages, roles and tools, by rendering test conversations. */
import type { PromptTool, TemplateMessage } from '../../messages.js';

export interface TemplateRequirements {
  /** Where the template accepts system messages. */
  readonly system: 'anywhere' | 'first' | 'nowhere';
  readonly mustStartWithUser: boolean;
  readonly mustAlternate: boolean;
  /** `template`: renders tools, calls and results, with calls in the format that the daemon's output filter reads. `text`: does not. */
  readonly tools: 'template' | 'text';
}

/** Renders a conversation. Throws the template's own error. */
type Render = (messages: readonly TemplateMessage[], tools: readonly PromptTool[]) => string;

/** Texts to find in the rendered result. Jinja's text filters leave digits unchanged. */
const MARK = { system: '71820459001', later: '71820459002', user: '71820459003', value: '71820459004', result: '71820459005' } as const;
const TOOL_NAME = 'probe_71820459006';

const SYSTEM: TemplateMessage = { role: 'system', content: MARK.system };
const LATER: TemplateMessage = { role: 'system', content: MARK.later };
const USER: TemplateMessage = { role: 'user', content: MARK.user };
const ASSISTANT: TemplateMessage = { role: 'assistant', content: 'Yes.' };
const CALL: TemplateMessage = {
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: TOOL_NAME, arguments: { value: MARK.value } } }],
};
const RESULT: TemplateMessage = { role: 'tool', content: MARK.result, tool_call_id: 'call_1', name: TOOL_NAME };
const TOOL: PromptTool = {
  type: 'function',
  function: { name: TOOL_NAME, description: '', parameters: { type: 'object', properties: { value: { type: 'string' } } } },
};
/** Tool call in the format that the output filter reads. */
const READABLE_CALL = new RegExp(`<tool_call>\\s*\\{\\s*"name":\\s*"${TOOL_NAME}",\\s*"arguments":\\s*\\{\\s*"value":\\s*"${MARK.value}"`);

export function templateRequirements(render: Render): TemplateRequirements {
  const renders = (messages: readonly TemplateMessage[], tools: readonly PromptTool[] = []): string | null => {
    try {
      return render(messages, tools);
    } catch {
      return null;
    }
  };
  const contains = (rendered: string | null, ...marks: readonly string[]): boolean =>
    rendered !== null && marks.every((mark) => rendered.includes(mark));
  const withCall = renders([USER, CALL, RESULT], [TOOL]);
  return {
    system: contains(renders([SYSTEM, USER, ASSISTANT, LATER, USER]), MARK.system, MARK.later)
      ? 'anywhere'
      : contains(renders([SYSTEM, USER]), MARK.system)
        ? 'first'
        : 'nowhere',
    mustStartWithUser: renders([ASSISTANT, USER]) === null || renders([SYSTEM]) === null,
    mustAlternate: renders([USER, USER]) === null,
    tools:
      contains(renders([USER], [TOOL]), TOOL_NAME) && contains(withCall, MARK.result) && READABLE_CALL.test(withCall ?? '')
        ? 'template'
        : 'text',
  };
}
