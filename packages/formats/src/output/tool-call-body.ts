/**
 * `ToolCallBody` parses the JSON of one tool call as it is generated: `name`, and `arguments` or `parameters`, in any order.
 *
 * If the arguments follow the name and are an object, they are streamed without validation. Otherwise they are buffered.
 */
import { isJsonObject, parsedJson } from '../json/json-value.js';

/** Maximum buffered UTF-16 units. A longer body without a started call is treated as text. */
const MAX_WAITING = 65_536;

type State = 'before' | 'key_or_end' | 'key' | 'colon' | 'value_start' | 'value' | 'after_value' | 'done' | 'bad';

interface BodyListener {
  started(name: string): void;
  arguments(delta: string): void;
}

export class ToolCallBody {
  readonly #listener: BodyListener;
  readonly #escapes = new EscapeBuffer();
  #state: State = 'before';
  /** Text read so far, in case the body is not a valid call. */
  #raw = '';
  #key = '';
  /** Text of the current key or value, unless the value is streamed. */
  #literal = '';
  #isStreaming = false;
  #isInString = false;
  #isEscaped = false;
  #depth = 0;
  #name: string | null = null;
  #arguments: string | null = null;
  #hasStarted = false;

  constructor(listener: BodyListener) {
    this.#listener = listener;
  }

  /** Whether `started` was reported. From then on, the body is a call even if invalid. */
  get started(): boolean {
    return this.#hasStarted;
  }

  get raw(): string {
    return this.#raw;
  }

  /** Reads one UTF-16 unit. `bad`: the unit is invalid and not consumed. A started call then ends; otherwise the body is text. */
  read(unit: string): 'more' | 'done' | 'bad' {
    if (!this.#hasStarted && this.#raw.length >= MAX_WAITING) return 'bad';
    this.#step(unit);
    if (this.#state === 'bad') return 'bad';
    if (!this.#hasStarted) this.#raw += unit;
    return this.#state === 'done' ? 'done' : 'more';
  }

  /** The output ends in the body: streamed arguments stay truncated. */
  end(): void {
    if (this.#isStreaming) this.#stream(this.#escapes.end());
  }

  #step(unit: string): void {
    switch (this.#state) {
      case 'before':
        if (!isSpace(unit)) this.#state = unit === '{' ? 'key_or_end' : 'bad';
        return;
      case 'key_or_end':
        if (unit === '"') this.#beginLiteral(unit, 'key');
        else if (unit === '}') this.#finish();
        else if (!isSpace(unit)) this.#state = 'bad';
        return;
      case 'key':
        if (this.#inLiteral(unit)) return;
        this.#key = String(parsedJson(this.#literal));
        this.#state = 'colon';
        return;
      case 'colon':
        if (!isSpace(unit)) this.#state = unit === ':' ? 'value_start' : 'bad';
        return;
      case 'value_start':
        if (isSpace(unit)) return;
        if (unit === ',' || unit === '}' || unit === ']' || unit === ':') this.#state = 'bad';
        else this.#beginValue(unit);
        return;
      case 'value':
        this.#inValue(unit);
        return;
      case 'after_value':
        if (unit === ',') this.#state = 'key_or_end';
        else if (unit === '}') this.#finish();
        else if (!isSpace(unit)) this.#state = 'bad';
        return;
      case 'done':
      case 'bad':
        return;
      default:
        this.#state satisfies never;
    }
  }

  #beginLiteral(unit: string, state: 'key' | 'value'): void {
    this.#state = state;
    this.#literal = this.#isStreaming ? '' : unit;
    this.#isInString = unit === '"';
    this.#isEscaped = false;
    this.#depth = unit === '{' || unit === '[' ? 1 : 0;
  }

  #beginValue(unit: string): void {
    this.#isStreaming = unit === '{' && this.#isArguments() && this.#name !== null;
    if (this.#isStreaming) {
      this.#start();
      this.#listener.arguments(unit);
    }
    this.#beginLiteral(unit, 'value');
  }

  #inValue(unit: string): void {
    const scalar = !this.#isInString && this.#depth === 0;
    if (scalar && (isSpace(unit) || unit === ',' || unit === '}')) {
      this.#endValue();
      if (this.#state === 'after_value') this.#step(unit);
    } else if (!this.#inLiteral(unit) && !scalar) this.#endValue();
  }

  /** Consumes a unit of a key or value. Returns false after the last unit of a string, object or array. */
  #inLiteral(unit: string): boolean {
    const shown = this.#isInString && unit < ' ' ? JSON.stringify(unit).slice(1, -1) : unit;
    if (this.#isStreaming) for (const each of shown) this.#stream(this.#escapes.push(each));
    else this.#literal += shown;
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (unit === '\\') this.#isEscaped = true;
      else if (unit === '"') this.#isInString = false;
    } else if (unit === '"') this.#isInString = true;
    else if (unit === '{' || unit === '[') this.#depth++;
    else if (unit === '}' || unit === ']') this.#depth--;
    return this.#isInString || this.#depth > 0;
  }

  #stream(delta: string): void {
    if (delta !== '') this.#listener.arguments(delta);
  }

  #endValue(): void {
    this.#state = 'after_value';
    if (this.#isStreaming) {
      this.#isStreaming = false;
      this.#arguments = '';
      return;
    }
    if (this.#isArguments() && this.#arguments === null) {
      this.#arguments = argumentsOf(this.#literal);
      if (this.#arguments === null) this.#state = 'bad';
    } else if (this.#key === 'name' && this.#name === null) {
      const name = parsedJson(repairEscapes(this.#literal));
      if (typeof name === 'string' && name !== '') this.#name = name;
      else this.#state = 'bad';
    }
    if (this.#name !== null && this.#arguments !== null) this.#start();
  }

  #isArguments(): boolean {
    return (this.#key === 'arguments' || this.#key === 'parameters') && this.#arguments === null;
  }

  #start(): void {
    if (this.#hasStarted || this.#name === null) return;
    this.#hasStarted = true;
    this.#raw = '';
    this.#listener.started(this.#name);
    if (this.#arguments !== null) this.#listener.arguments(this.#arguments);
  }

  #finish(): void {
    if (this.#name === null) {
      this.#state = 'bad';
      return;
    }
    this.#arguments ??= '{}';
    this.#start();
    this.#state = 'done';
  }
}

/** JSON text of the arguments; null if invalid. Also accepts what some models generate: a string with the object, or null. */
function argumentsOf(literal: string): string | null {
  const repaired = repairEscapes(literal);
  if (literal.startsWith('{')) return repaired;
  const value = parsedJson(repaired);
  if (value === null) return '{}';
  return typeof value === 'string' && isJsonObject(parsedJson(value)) ? repairEscapes(value) : null;
}

export function isSpace(unit: string): boolean {
  return unit === ' ' || unit === '\n' || unit === '\r' || unit === '\t';
}

const ESCAPE = /\\(?:ud[89ab][\da-f]{2}\\ud[c-f][\da-f]{2}|u[\da-f]{4}|[\s\S])/gi;
/** Escape of NUL or of a lone surrogate. */
const REPLACED = /^\\u(?:0000|d[89a-f][\da-f]{2})$/i;
/** Start of an escape. An escaped first half of a surrogate pair is incomplete too. */
const INCOMPLETE = /^(?:\\ud[89ab][\da-f]{2})?(?:\\(?:u[\da-f]{0,3})?)?$/i;
const REPLACEMENT = '\\ufffd';
const ESCAPE_LENGTH = 6;

/**
 * Withholds an incomplete escape of JSON text. Escapes of NUL and of lone surrogates become `\ufffd`.
 *
 * `readJsonBody` would reject both in a request that sends the arguments back.
 */
class EscapeBuffer {
  /** Starts with a backslash, or is empty. */
  #held = '';

  /** Reads one UTF-16 unit. */
  push(unit: string): string {
    if (this.#held === '' && unit !== '\\') return unit;
    const text = this.#held + unit;
    const second = text.slice(ESCAPE_LENGTH);
    // After a lone first half, another may start a pair.
    const keepsSecond = second !== '' && INCOMPLETE.test(second) && !INCOMPLETE.test(text);
    this.#held = INCOMPLETE.test(text) ? text : keepsSecond ? second : '';
    return repairEscapes(text.slice(0, text.length - this.#held.length));
  }

  /** Rest of a truncated text, unchanged. */
  end(): string {
    const rest = this.#held;
    this.#held = '';
    return rest;
  }
}

function repairEscapes(json: string): string {
  return json.includes('\\') ? json.replace(ESCAPE, (each) => (REPLACED.test(each) ? REPLACEMENT : each)) : json;
}
