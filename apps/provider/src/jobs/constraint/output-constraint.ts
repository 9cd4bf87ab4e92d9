/**
 * Compiles the output constraint of a request (schema, pattern, choice or tool call) to a grammar: an automaton that permits only
 * fitting tokens. Checks the finished output too.
 */
import { DEFAULT_TOOL_CALL_TAGS, isJsonObject, type ParsedRequest, parsedJson, type TextRequest, type Tool } from '@inference/formats';
import {
  ANY_CHARACTER,
  checkPattern,
  type Grammar,
  GrammarBuilder,
  GrammarMatcher,
  GrammarTooLarge,
  isValidDocument,
  JsonGrammar,
  LanguageFactory,
  languageOfPattern,
  PatternError,
  SchemaCompiler,
  SchemaError,
  type Sequence,
  type Term,
  toSchemaError,
} from '@inference/json-schema-grammar';
import type { JobFailure } from '@inference/protocol';
import { type FieldNames, fieldNames } from '../field-names.js';
import { JobError } from '../job-error.js';

export interface FinishedOutput {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

/** The parts of a request that constrain its output, as plain data for worker threads. */
export interface ConstraintRequest extends Pick<TextRequest, 'parallelToolCalls' | 'responseFormat' | 'toolChoice' | 'tools'> {
  readonly fields: FieldNames;
}

/** A compiled constraint, also as plain data. */
export interface CompiledConstraint {
  readonly grammar: Grammar;
  /** Whether the grammar permits no free text, such as a think section, before or between the constrained parts. */
  readonly coversWholeOutput: boolean;
}

/** Steps that `lookAhead` tries, which take tens of milliseconds. */
const STEPS_AHEAD = 10_000;
/** Maximum tool calls of an output without free text. */
const MAX_CALLS = 16;

/** Null if the request does not constrain its output. */
export function constraintRequest(parsed: ParsedRequest): ConstraintRequest | null {
  const { request } = parsed;
  if (request.task === 'count') return null;
  const { parallelToolCalls, responseFormat, toolChoice, tools } = request;
  const constraint = { parallelToolCalls, responseFormat, toolChoice, tools, fields: fieldNames(parsed) };
  return answerFormat(constraint) !== null || tools.length > 0 ? constraint : null;
}

/** Request field with the schema, pattern or choices that the grammar enforces; null if there are none. */
export function schemaField(constraint: ConstraintRequest): string | null {
  const format = answerFormat(constraint);
  if (format !== null && format.type !== 'json_object') return format.field ?? constraint.fields.responseSchema;
  return callableTools(constraint).some((tool) => enforcesParameters(constraint, tool)) ? 'tools' : null;
}

/** Throws {@link JobError} `unsupported` or `invalid_request`, with the field. */
export function compileConstraint(constraint: ConstraintRequest): CompiledConstraint {
  const { fields, parallelToolCalls, toolChoice } = constraint;
  const tools = callableTools(constraint);
  const isForced = isCallForced(constraint);
  const format = answerFormat(constraint);
  const builder = new ConstraintGrammarBuilder(fields);
  const call = tools.length === 0 ? null : builder.call(tools, (tool) => enforcesParameters(constraint, tool));
  const isSingle = toolChoice.type === 'named' || !parallelToolCalls;
  const calls = call === null ? null : isSingle ? builder.opened(call) : builder.listed(call);
  const root =
    format !== null ? builder.either(builder.answer(format), calls) : isForced ? (calls as Term) : builder.textWithCalls(call, isSingle);
  const grammar = builder.grammar(root, format !== null ? 'answer' : 'tools');
  const param = schemaField(constraint);
  if (param !== null) builder.lookAhead(grammar, param);
  return { grammar, coversWholeOutput: format !== null || isForced };
}

/** The tools that `tool_choice` permits. */
function callableTools({ toolChoice, tools }: ConstraintRequest): readonly Tool[] {
  if (toolChoice.type === 'none') return [];
  return toolChoice.type === 'named' ? tools.filter(({ name }) => name === toolChoice.name) : tools;
}

function isCallForced(constraint: ConstraintRequest): boolean {
  const { type } = constraint.toolChoice;
  return (type === 'required' || type === 'named') && callableTools(constraint).length > 0;
}

type AnswerFormat = Exclude<TextRequest['responseFormat'], { type: 'text' }>;

/** Format of the answer text; null if the text is free, or a tool call is required instead. */
function answerFormat(constraint: ConstraintRequest): AnswerFormat | null {
  const { responseFormat } = constraint;
  return responseFormat.type === 'text' || isCallForced(constraint) ? null : responseFormat;
}

/** Whether the grammar enforces the tool's parameters: always if a call is required, else only for strict tools. */
export function enforcesParameters(constraint: ConstraintRequest, { strict }: Tool): boolean {
  return strict || isCallForced(constraint);
}

class ConstraintGrammarBuilder {
  readonly #builder = new GrammarBuilder();
  readonly #json = new JsonGrammar(this.#builder, new LanguageFactory());

  constructor(private readonly fields: FieldNames) {}

  /** One or the other; only `one` if `other` is null. */
  either(one: Term, other: Term | null): Term {
    return other === null ? one : this.#builder.rule([one], [other]);
  }

  answer(format: AnswerFormat): Term {
    const json = this.#json;
    switch (format.type) {
      case 'json_object':
        return json.anyObject();
      case 'json_schema': {
        const field = format.field ?? this.fields.responseSchema;
        return this.#compile(format.schema, format.strict, field, (schema) => schema.value([format.schema]));
      }
      case 'choice':
        return this.#guarded(format.field, () =>
          json.unquoted(json.languages.union(...format.choices.map((text) => json.languages.text(text)))),
        );
      case 'regex':
        return this.#guarded(format.field, () => {
          checkPattern(format.pattern);
          return json.unquoted(languageOfPattern(json.languages, `^(?:${format.pattern})$`));
        });
      default:
        return format satisfies never;
    }
  }

  /** One tool call, without the opening tag. */
  call(tools: readonly Tool[], enforcesParameters: (tool: Tool) => boolean): Term {
    const builder = this.#builder;
    const line = builder.rule([], builder.text('\n'));
    return builder.rule([line, this.#bodies(tools, enforcesParameters), line, ...builder.text(TAGS.close)]);
  }

  /** The JSON between the tags. Tools whose parameters are not enforced take any object. */
  #bodies(tools: readonly Tool[], enforcesParameters: (tool: Tool) => boolean): Term {
    const builder = this.#builder;
    const json = this.#json;
    const member = (key: string) => [...json.literal(key), ...builder.text(':'), json.space];
    const body = (names: Sequence, value: Term): Sequence => [
      ...[...builder.text('{'), json.space, ...member('name'), ...names, ...builder.text(','), json.space],
      ...[...member('arguments'), value, json.space, ...builder.text('}')],
    ];
    const enforced = tools.filter(enforcesParameters);
    const free = tools.filter((tool) => !enforced.includes(tool)).map(({ name }) => name);
    const names = builder.rule(...json.anyOf(free));
    const bodies = enforced.map(({ name, parameters, strict }) =>
      body(
        json.literal(name),
        this.#compile(parameters, strict, 'tools', (schema) => schema.value([OBJECT, parameters])),
      ),
    );
    return builder.rule(...bodies, ...(free.length === 0 ? [] : [body([names], json.anyObject())]));
  }

  /** A tool call with its opening tag. */
  opened(call: Term): Term {
    return this.#builder.rule([...this.#builder.text(TAGS.open), call]);
  }

  /** One to `MAX_CALLS` tool calls. */
  listed(call: Term): Term {
    const builder = this.#builder;
    const opened = this.opened(call);
    let rest = builder.rule([]);
    for (let count = 1; count < MAX_CALLS; count++) rest = builder.rule([], [...builder.text('\n'), opened, rest]);
    return builder.rule([opened, rest]);
  }

  /**
   * Free text in which each opening tag is followed by a call: a state machine with one state per prefix of the tag. With `call` null, no
   * tag can be completed, so that the model cannot call the tools that it sees.
   *
   * The tag's first character occurs only once in the tag, so a mismatch leads to the first or second state.
   */
  textWithCalls(call: Term | null, isSingle: boolean): Term {
    const builder = this.#builder;
    const [first = '', ...others] = TAGS.open;
    const states = [first, ...others].map(() => builder.reserve());
    const [start = 0, second = 0] = states;
    const called = call === null ? null : builder.rule(isSingle ? [call] : [call, start]);
    for (const [index, state] of states.entries()) {
      const expected = [first, ...others][index] ?? '';
      const other = builder.class(
        without(
          ANY_CHARACTER,
          [first, expected].map((character) => character.codePointAt(0) ?? 0),
        ),
      );
      const restart: Sequence[] = index === 0 ? [] : [[...builder.text(first), second]];
      const next = states[index + 1] ?? called;
      const matches: Sequence[] = next === null ? [] : [[...builder.text(expected), next]];
      builder.define(state, [[], [other, start], ...restart, ...matches]);
    }
    return start;
  }

  grammar(root: Term, of: 'answer' | 'tools'): Grammar {
    const grammar = this.#guarded(of === 'tools' ? 'tools' : this.fields.responseFormat, () => this.#builder.grammar(root));
    // Null: no value at all fits the schema.
    if (grammar === null) throw new JobError('invalid_request', { param: of === 'tools' ? 'tools' : this.fields.responseFormat });
    return grammar;
  }

  /** Throws {@link JobError} if llama.cpp may need too many grammar positions. The engine looks ahead again while it generates. */
  lookAhead(grammar: Grammar, field: string): void {
    this.#guarded(field, () => {
      const machine = new GrammarMatcher(grammar);
      if (machine.mayExceedPositions(machine.start(), STEPS_AHEAD)) throw new GrammarTooLarge();
    });
  }

  #compile(schema: unknown, isStrict: boolean, field: string, make: (compiler: SchemaCompiler) => Term): Term {
    return this.#guarded(field, () => make(new SchemaCompiler(this.#json, schema, isStrict)));
  }

  /** Runs `make`, and converts its errors about schema and pattern to {@link JobError}. */
  #guarded<T>(field: string, make: () => T): T {
    try {
      return make();
    } catch (thrown) {
      const error = thrown instanceof PatternError ? new SchemaError(thrown.code, [], thrown.limit) : toSchemaError(thrown);
      throw error instanceof SchemaError ? new JobError(error.code, { param: paramOf(field, error), ...limitOf(error) }) : error;
    }
  }
}

const OBJECT = { type: 'object' };
const TAGS = DEFAULT_TOOL_CALL_TAGS;

/** Ranges (alternating first and last code points) without the given code points. */
function without(ranges: readonly number[], codes: readonly number[]): number[] {
  let left = [...ranges];
  for (const code of codes) {
    const next: number[] = [];
    for (let i = 0; i + 1 < left.length; i += 2) {
      const [low, high] = [left[i] as number, left[i + 1] as number];
      if (code < low || code > high) next.push(low, high);
      else next.push(...(low < code ? [low, code - 1] : []), ...(code < high ? [code + 1, high] : []));
    }
    left = next;
  }
  return left;
}

function limitOf({ limit }: SchemaError): Pick<JobFailure, 'limit'> {
  return limit === null ? {} : { limit };
}

/** `param` of an error: the schema keyword's path in the client's notation, shortened from its start, or to the field, if too long. */
function paramOf(field: string, { path, limit }: SchemaError): string {
  for (let from = 0; from < (limit === null ? 1 : path.length); from++) {
    const steps = path.slice(from).map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`));
    const param = `${field}${from === 0 ? '' : '..'}${steps.join('')}`;
    if (/^[A-Za-z0-9_.[\]]{1,64}$/.test(param)) return param;
  }
  return field;
}

/** False if the value violates the schema. An undecided check counts as true, because the grammar enforces the schema. */
function mayFit(schema: unknown, value: unknown): boolean {
  return isValidDocument(schema, value) !== false;
}

/** Whether the finished output satisfies the constraint, as far as this can be checked. */
export function satisfiesConstraint(constraint: ConstraintRequest, { text, calls }: FinishedOutput): boolean {
  const { responseFormat, tools, toolChoice } = constraint;
  const toolByName = new Map(tools.map((tool) => [tool.name, tool]));
  const hasValidCalls = calls.every((call) => {
    const tool = toolByName.get(call.name);
    const value = parsedJson(call.arguments);
    if (tool === undefined || !isJsonObject(value)) return false;
    return !tool.strict || mayFit(tool.parameters, value);
  });
  if (!hasValidCalls) return false;
  if (toolChoice.type === 'required' || toolChoice.type === 'named') return calls.length > 0;
  if (answerFormat(constraint) === null || calls.length > 0) return true;
  if (responseFormat.type === 'choice') return responseFormat.choices.includes(text);
  // The grammar enforces the pattern. As a regular expression, a client's pattern could run for very long.
  if (responseFormat.type === 'regex') return true;
  const value = parsedJson(text);
  if (value === undefined) return false;
  if (responseFormat.type !== 'json_schema') return isJsonObject(value);
  return !responseFormat.strict || mayFit(responseFormat.schema, value);
}
