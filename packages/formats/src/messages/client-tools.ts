/**
 * Client tools that Anthropic's API predefines, such as `bash_20250124` and `text_editor_20250728`.
 *
 * Requests name only the type of such a tool. This file supplies description and parameters.
 */
import { isPresent, rejectInvalid, rejectUnsupported } from '../errors/reject.js';
import type { JsonSchema, Tool } from '../request.js';
import { quotedType } from '../tools.js';
import type { MessagesTool } from './schema.js';

interface KnownTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

const text = (description: string) => ({ type: 'string', description });
const LINE = { type: 'integer', minimum: 0, description: 'Line after which to insert; 0 is the beginning of the file.' };
const VIEW_RANGE = {
  type: 'array',
  items: { type: 'integer' },
  minItems: 2,
  maxItems: 2,
  description: 'First and last line to view, counted from 1; -1 as the last is the end of the file.',
};
const EDIT_PROPERTIES = {
  path: text('Path of the file or directory.'),
  file_text: text('Of create: the content of the new file.'),
  old_str: text('Of str_replace: the text to replace. It must occur exactly once.'),
  new_str: text('Of str_replace: the text to put in its place.'),
  insert_line: LINE,
  view_range: VIEW_RANGE,
};

const BASH: KnownTool = {
  name: 'bash',
  description: 'Runs commands in a bash shell that keeps its state between calls.',
  parameters: {
    type: 'object',
    properties: {
      command: text('Command to run. Required unless restart is true.'),
      restart: { type: 'boolean', description: 'Restarts the shell.' },
    },
  },
};

function editor(name: string, commands: readonly string[], inserted: Readonly<Record<string, unknown>>): KnownTool {
  return {
    name,
    description: 'Views, creates and edits text files.',
    parameters: {
      type: 'object',
      properties: { command: { type: 'string', enum: commands }, ...EDIT_PROPERTIES, ...inserted },
      required: ['command', 'path'],
    },
  };
}

const EDIT_COMMANDS = ['view', 'create', 'str_replace', 'insert'];
const OLD_EDITOR = editor('str_replace_editor', [...EDIT_COMMANDS, 'undo_edit'], {
  new_str: text('Of str_replace and insert: the new text.'),
});
const EDITOR = editor('str_replace_based_edit_tool', EDIT_COMMANDS, { insert_text: text('Of insert: the text to insert.') });

const MEMORY: KnownTool = {
  name: 'memory',
  description: 'Keeps notes in files under /memories, which last beyond this conversation. View the directory before you begin.',
  parameters: {
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
      ...EDIT_PROPERTIES,
      insert_text: text('Of insert: the text to insert.'),
      old_path: text('Of rename: the present path.'),
      new_path: text('Of rename: the new path.'),
    },
    required: ['command'],
  },
};

/** Key: tool type. */
const KNOWN: ReadonlyMap<string, KnownTool> = new Map([
  ['bash_20241022', BASH],
  ['bash_20250124', BASH],
  ['text_editor_20241022', OLD_EDITOR],
  ['text_editor_20250124', OLD_EDITOR],
  ['text_editor_20250429', EDITOR],
  ['text_editor_20250728', EDITOR],
  ['memory_20250818', MEMORY],
]);

/** Types of tool search tools. They have no effect, because the model sees all tools from the start. */
const TOOL_SEARCH = /^tool_search_tool_[a-z0-9_]{1,40}$/;

export function isToolSearch({ type }: MessagesTool): boolean {
  return isPresent(type) && TOOL_SEARCH.test(type);
}

/** Converts a tool of the request; empty for a tool search tool. Throws RequestError. */
export function clientTool(tool: MessagesTool, path: string): Tool[] {
  if (isToolSearch(tool)) return [];
  if (!isPresent(tool.type) || tool.type === 'custom') return [customTool(tool, path)];
  const known = KNOWN.get(tool.type);
  if (known === undefined) return refuseTool(tool.type, path);
  if (tool.name !== undefined && tool.name !== known.name)
    rejectInvalid(`${path}.name`, `${path}.name must be "${known.name}" for a tool of this type.`);
  const cut = isPresent(tool.max_characters) ? ` Views end after ${tool.max_characters} characters.` : '';
  const { name, parameters } = known;
  return [{ name, description: (tool.description ?? known.description) + cut, parameters, strict: tool.strict ?? false }];
}

function customTool(tool: MessagesTool, path: string): Tool {
  const name = tool.name ?? rejectInvalid(`${path}.name`, `${path}.name is required.`);
  const parameters = tool.input_schema ?? rejectInvalid(`${path}.input_schema`, `${path}.input_schema is required.`);
  return { name, description: tool.description ?? null, parameters, strict: tool.strict ?? false };
}

function refuseTool(type: string, path: string): never {
  if (/^(computer|browser)_/.test(type)) return rejectUnsupported(path, `${path} is ${quotedType(type)}, which is not supported.`);
  return rejectUnsupported(
    path,
    `${path} is ${quotedType(type)}. No tools run at this service: remove it, or offer it with name and input_schema.`,
  );
}
