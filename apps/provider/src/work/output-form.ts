/** What form a request demands of the output: JSON of a schema, calls that have to be made, calls that have to be right. */
import { DEFAULT_TOOL_CALL_TAGS, isJsonObject, type ParsedRequest, parsedJson, type TextRequest, type Tool } from '@inference/formats';
import { type Grammar, GrammarBuilder, type Sequence, type Term } from '../engine/grammar/grammar.js';
import { type FieldNames, fieldNames } from './field-names.js';
import { JobError } from './job-error.js';
import { asSchemaError, SchemaCompiler } from './schema/compile.js';
import { JsonGrammar } from './schema/json-grammar.js';
import { ANY_CHARACTER, Languages } from './schema/language.js';
import { SchemaError } from './schema/schema-error.js';
import { fitsDocument } from './schema/validator.js';

/** What an output came to. */
export interface FormedOutput {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
}

export interface OutputForm {
  readonly grammar: Grammar;
  /** The output has the form from its first character on, so there is no place for thoughts. */
  readonly isWhole: boolean;
  /** Whether an output that was not cut off is what the client asked for. */
  fits(output: FormedOutput): boolean;
}

/** Calls that one answer may hold where at least one is demanded. */
const MAX_CALLS = 16;

/** Null where the model writes as it likes. Throws {@link JobError} `unsupported` or `invalid_request` with the field. */
export function outputForm(parsed: ParsedRequest): OutputForm | null {
  const { request } = parsed;
  if (request.task === 'count') return null;
  const { responseFormat, tools, toolChoice } = request;
  const callable =
    toolChoice.type === 'none' ? [] : toolChoice.type === 'named' ? tools.filter(({ name }) => name === toolChoice.name) : tools;
  const isForced = callable.length > 0 && (toolChoice.type === 'required' || toolChoice.type === 'named');
  const answers = responseFormat.type !== 'text' && !isForced;
  if (!answers && callable.length === 0) return null;

  const form = new FormBuilder(fieldNames(parsed));
  const call = callable.length === 0 ? null : form.call(callable, isForced);
  const isSingle = toolChoice.type === 'named' || !request.parallelToolCalls;
  const calls = call === null ? null : isSingle ? form.opened(call) : form.listed(call);
  const root = answers
    ? form.either(form.answer(responseFormat), calls)
    : isForced
      ? (calls as Term)
      : form.textWithCalls(call as Term, isSingle);
  const grammar = form.grammar(root, answers ? 'answer' : 'tools');
  return { grammar, isWhole: answers || isForced, fits: (output) => fits(request, answers, output) };
}

class FormBuilder {
  readonly #builder = new GrammarBuilder();
  readonly #json = new JsonGrammar(this.#builder, new Languages());

  constructor(private readonly fields: FieldNames) {}

  either(one: Term, other: Term | null): Term {
    return other === null ? one : this.#builder.rule([one], [other]);
  }

  answer(format: Exclude<TextRequest['responseFormat'], { type: 'text' }>): Term {
    if (format.type === 'json_schema') {
      return this.#compile(format.schema, format.strict, this.fields.responseSchema, (schema) => schema.value([format.schema]));
    }
    return this.#json.anyObject();
  }

  /** One call of one of the tools, without the tag that opens it. */
  call(tools: readonly Tool[], isForced: boolean): Term {
    const builder = this.#builder;
    const line = builder.rule([], builder.text('\n'));
    return builder.rule([line, this.#bodies(tools, isForced), line, ...builder.text(TAGS.close)]);
  }

  /**
   * What stands between the tags. Where the model decides, a tool that is not strict takes any object: its arguments may
   * come in any order, and nobody was promised what they are.
   */
  #bodies(tools: readonly Tool[], isForced: boolean): Term {
    const builder = this.#builder;
    const json = this.#json;
    const member = (key: string) => [...json.literal(key), ...builder.text(':'), json.space];
    const body = (names: Sequence, value: Term): Sequence => [
      ...[...builder.text('{'), json.space, ...member('name'), ...names, ...builder.text(','), json.space],
      ...[...member('arguments'), value, json.space, ...builder.text('}')],
    ];
    const shaped = tools.filter(({ strict }) => strict || isForced);
    const free = tools.filter((tool) => !shaped.includes(tool)).map(({ name }) => name);
    const names = builder.rule(...json.anyOf(free));
    const bodies = shaped.map(({ name, parameters, strict }) =>
      body(
        json.literal(name),
        this.#compile(parameters, strict, 'tools', (schema) => schema.value([OBJECT, parameters])),
      ),
    );
    return builder.rule(...bodies, ...(free.length === 0 ? [] : [body([names], json.anyObject())]));
  }

  opened(call: Term): Term {
    return this.#builder.rule([...this.#builder.text(TAGS.open), call]);
  }

  /** Calls one after the other. */
  listed(call: Term): Term {
    const builder = this.#builder;
    const opened = this.opened(call);
    let rest = builder.rule([]);
    for (let count = 1; count < MAX_CALLS; count++) rest = builder.rule([], [...builder.text('\n'), opened, rest]);
    return builder.rule([opened, rest]);
  }

  /**
   * Any text, in which the tag that opens a call is followed by one: a state for each beginning of the tag. Its first
   * character stands in it only once, so a character that does not fit leads back to the start, or to the second state.
   */
  textWithCalls(call: Term, isSingle: boolean): Term {
    const builder = this.#builder;
    const [first = '', ...others] = TAGS.open;
    const states = [first, ...others].map(() => builder.reserve());
    const [start = 0, second = 0] = states;
    const called = builder.rule(isSingle ? [call] : [call, start]);
    for (const [index, state] of states.entries()) {
      const wanted = [first, ...others][index] ?? '';
      const other = builder.class(
        without(
          ANY_CHARACTER,
          [first, wanted].map((character) => character.codePointAt(0) ?? 0),
        ),
      );
      const restart: Sequence[] = index === 0 ? [] : [[...builder.text(first), second]];
      builder.define(state, [[], [other, start], ...restart, [...builder.text(wanted), states[index + 1] ?? called]]);
    }
    return start;
  }

  /** Throws {@link JobError}. */
  grammar(root: Term, of: 'answer' | 'tools'): Grammar {
    const grammar = this.#guarded(of === 'tools' ? 'tools' : this.fields.responseFormat, () => this.#builder.grammar(root));
    // No value at all fits the schema.
    if (grammar === null) throw new JobError('invalid_request', { param: of === 'tools' ? 'tools' : this.fields.responseFormat });
    return grammar;
  }

  #compile(schema: unknown, isStrict: boolean, field: string, make: (compiler: SchemaCompiler) => Term): Term {
    return this.#guarded(field, () => make(new SchemaCompiler(this.#json, schema, isStrict)));
  }

  #guarded<T>(field: string, make: () => T): T {
    try {
      return make();
    } catch (thrown) {
      const error = asSchemaError(thrown);
      throw error instanceof SchemaError ? new JobError(error.code, { param: paramOf(field, error.path) }) : error;
    }
  }
}

const OBJECT = { type: 'object' };
const TAGS = DEFAULT_TOOL_CALL_TAGS;

/** Ranges without some of their code points. */
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

/** The keyword's place as clients write it, or that of the whole schema where the wire has no room for it. */
function paramOf(field: string, path: readonly string[]): string {
  const param = path.reduce((before, step) => before + (/^\d+$/.test(step) ? `[${step}]` : `.${step}`), field);
  return /^[A-Za-z0-9_.[\]]{1,64}$/.test(param) ? param : field;
}

/** The grammar has seen to it already: what cannot be told is no reason to give an answer up. */
function mayFit(schema: unknown, value: unknown): boolean {
  return fitsDocument(schema, value) !== false;
}

function fits({ responseFormat, tools, toolChoice }: TextRequest, answers: boolean, { text, calls }: FormedOutput): boolean {
  const known = new Map(tools.map((tool) => [tool.name, tool]));
  const right = calls.every((call) => {
    const tool = known.get(call.name);
    const value = parsedJson(call.arguments);
    if (tool === undefined || !isJsonObject(value)) return false;
    return !tool.strict || mayFit(tool.parameters, value);
  });
  if (!right) return false;
  if (toolChoice.type === 'required' || toolChoice.type === 'named') return calls.length > 0;
  if (!answers || calls.length > 0) return true;
  const value = parsedJson(text);
  if (value === undefined) return false;
  if (responseFormat.type !== 'json_schema') return isJsonObject(value);
  return !responseFormat.strict || mayFit(responseFormat.schema, value);
}
