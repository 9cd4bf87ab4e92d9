/**
 * `ToolCallBody` parses the JSON object of one tool call: `name`, and `arguments` or `parameters`, in any order.
 *
 * Arguments after the name stream without validation, if an object. Other arguments are buffered, up to a bound.
 */
import { isJsonObject, parsedJson } from '../json/json-value.js';
import { EscapeBuffer, repairEscapes } from './escape-buffer.js';

/** Maximum UTF-16 units before the call starts. Longer bodies are text. */
const MAX_WAITING = 65_536;

type Place = 'before' | 'key_or_end' | 'key' | 'colon' | 'value_start' | 'value' | 'after_value' | 'done' | 'bad';

interface BodyListener {
  started(name: string): void;
  arguments(delta: string): void;
}

export class ToolCallBody {
  readonly #listener: BodyListener;
  readonly #escapes = new EscapeBuffer();
  #place: Place = 'before';
  /** Consumed text, in case the body turns out to be plain text. */
  #raw = '';
  #key = '';
  /** The current literal, unless streamed. */
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

  /** The call was started and can no longer become text. */
  get started(): boolean {
    return this.#hasStarted;
  }

  get raw(): string {
    return this.#raw;
  }

  /** Reads one UTF-16 unit. `bad`: the unit is not consumed; a started call ends before the unit, another body is text. */
  read(unit: string): 'more' | 'done' | 'bad' {
    if (!this.#hasStarted && this.#raw.length >= MAX_WAITING) return 'bad';
    this.#step(unit);
    if (this.#place === 'bad') return 'bad';
    if (!this.#hasStarted) this.#raw += unit;
    return this.#place === 'done' ? 'done' : 'more';
  }

  /** The output ends in the body: streamed arguments stay truncated. */
  end(): void {
    if (this.#isStreaming) this.#stream(this.#escapes.end());
  }

  #step(unit: string): void {
    switch (this.#place) {
      case 'before':
        if (!isSpace(unit)) this.#place = unit === '{' ? 'key_or_end' : 'bad';
        return;
      case 'key_or_end':
        if (unit === '"') this.#beginLiteral(unit, 'key');
        else if (unit === '}') this.#finish();
        else if (!isSpace(unit)) this.#place = 'bad';
        return;
      case 'key':
        if (this.#inLiteral(unit)) return;
        this.#key = String(parsedJson(this.#literal));
        this.#place = 'colon';
        return;
      case 'colon':
        if (!isSpace(unit)) this.#place = unit === ':' ? 'value_start' : 'bad';
        return;
      case 'value_start':
        if (isSpace(unit)) return;
        if (unit === ',' || unit === '}' || unit === ']' || unit === ':') this.#place = 'bad';
        else this.#beginValue(unit);
        return;
      case 'value':
        this.#inValue(unit);
        return;
      case 'after_value':
        if (unit === ',') this.#place = 'key_or_end';
        else if (unit === '}') this.#finish();
        else if (!isSpace(unit)) this.#place = 'bad';
        return;
      case 'done':
      case 'bad':
        return;
      default:
        this.#place satisfies never;
    }
  }

  #beginLiteral(unit: string, place: 'key' | 'value'): void {
    this.#place = place;
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
      if (this.#place === 'after_value') this.#step(unit);
    } else if (!this.#inLiteral(unit) && !scalar) this.#endValue();
  }

  /** Consumes a unit of the literal; false after the last unit of a string, object or array. */
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
    this.#place = 'after_value';
    if (this.#isStreaming) {
      this.#isStreaming = false;
      this.#arguments = '';
      return;
    }
    if (this.#isArguments() && this.#arguments === null) {
      this.#arguments = argumentsOf(this.#literal);
      if (this.#arguments === null) this.#place = 'bad';
    } else if (this.#key === 'name' && this.#name === null) {
      const name = parsedJson(repairEscapes(this.#literal));
      if (typeof name === 'string' && name !== '') this.#name = name;
      else this.#place = 'bad';
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
      this.#place = 'bad';
      return;
    }
    this.#arguments ??= '{}';
    this.#start();
    this.#place = 'done';
  }
}

/** JSON text of the arguments; null if invalid. Some models write a string that contains the object, or null for none. */
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
