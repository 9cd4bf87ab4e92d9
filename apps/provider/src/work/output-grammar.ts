/** What form a request demands of the output: JSON of a schema, or a tool call that has to be made. */
import { DEFAULT_TOOL_CALL_TAGS, type ParsedRequest, type TextRequest, type Tool } from '@inference/formats';
import type { GrammarSchema, OutputGrammar } from '../engine/messages.js';
import { JobError } from './job-error.js';
import { narrowSchema, SchemaError } from './narrow-schema.js';
import { fieldNames } from './unsupported.js';

/** Null where the model writes as it likes. Throws {@link JobError} `unsupported` or `invalid_request` with the field. */
export function outputGrammar(parsed: ParsedRequest): OutputGrammar | null {
  const { request } = parsed;
  const { responseFormat } = fieldNames(parsed);
  if (request.task === 'count') return null;
  const forced = forcedTools(request);
  if (forced.length > 0) {
    const { open, close } = DEFAULT_TOOL_CALL_TAGS;
    const calls = forced.map((tool) => callSchema(tool));
    return { before: `${open}\n`, schema: { oneOf: calls }, after: `\n${close}` };
  }
  switch (request.responseFormat.type) {
    case 'text':
      return null;
    case 'json_object':
      refuseBesideTools(request, responseFormat);
      return { before: '', schema: { type: 'object', additionalProperties: true }, after: '' };
    case 'json_schema':
      refuseBesideTools(request, responseFormat);
      return { before: '', schema: narrowed(request.responseFormat.schema, responseFormat), after: '' };
    default:
      return request.responseFormat satisfies never;
  }
}

/** Tools of which one has to be called. */
function forcedTools({ tools, toolChoice }: TextRequest): readonly Tool[] {
  if (toolChoice.type === 'required') return tools;
  return toolChoice.type === 'named' ? tools.filter(({ name }) => name === toolChoice.name) : [];
}

function callSchema({ name, parameters }: Tool): GrammarSchema {
  const members = { type: 'object', ...parameters };
  return { type: 'object', properties: { name: narrowed({ const: name }, 'tools'), arguments: narrowed(members, 'tools') } };
}

/** A grammar of the answer would leave no room for a call. */
function refuseBesideTools({ tools, toolChoice }: TextRequest, param: string): void {
  if (tools.length > 0 && toolChoice.type !== 'none') throw new JobError('unsupported', { param });
}

function narrowed(schema: unknown, param: string): GrammarSchema {
  try {
    return narrowSchema(schema);
  } catch (error) {
    throw error instanceof SchemaError ? new JobError(error.code, { param }) : error;
  }
}
