/** Tags of a model whose chat template names no others. In a file of their own, which engine processes load without the rest. */
import type { ThinkTags } from './think-filter.js';
import type { ToolCallTags } from './tool-call-filter.js';

export const DEFAULT_THINK_TAGS: ThinkTags = { open: '<think>', close: '</think>' };

export const DEFAULT_TOOL_CALL_TAGS: ToolCallTags = { open: '<tool_call>', close: '</tool_call>' };
