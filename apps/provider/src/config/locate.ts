/** `locate` finds the position of each key in a valid TOML 1.0 document, because the parser returns only values. */

export interface Place {
  /** `header`: table with its own header. `value`: value of a key, including dotted keys. */
  readonly kind: 'header' | 'value';
  /** Offset of the header, or of the whole dotted key. */
  readonly start: number;
  /** Offset of the key, or of the first bracket of an element. */
  readonly key: number;
  /** Offsets of the value. A table extends from its header to the end of its last line. */
  readonly from: number;
  readonly to: number;
}

/** By path: keys and indices joined with `/`, escaped as in a JSON pointer (RFC 6901), beginning with `/`. */
export type Places = ReadonlyMap<string, Place>;

export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

export function locate(text: string): Places {
  return new TomlScanner(text).document();
}

/** Line and column of an offset, both from 1. */
export function lineAndColumn(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

class TomlScanner {
  readonly #places = new Map<string, Place>();
  /** Elements so far of each array of tables. */
  readonly #lengths = new Map<string, number>();
  #at = 0;

  constructor(private readonly text: string) {}

  document(): Places {
    let table: (string | number)[] = [];
    for (;;) {
      this.#skip(/[ \t\r\n]*(#[^\n]*[ \t\r\n]*)*/y);
      if (this.#at >= this.text.length) return this.#places;
      if (this.text[this.#at] === '[') {
        table = this.#header();
      } else this.#pair(table);
      this.#extendTable(table);
    }
  }

  /** `[a.b]` or `[[a.b]]`; returns the path of the table. */
  #header(): (string | number)[] {
    const start = this.#at;
    const isArray = this.text.startsWith('[[', this.#at);
    this.#at += isArray ? 2 : 1;
    const path: (string | number)[] = [];
    for (const { name } of this.#keys()) {
      path.push(name);
      const length = this.#lengths.get(pointer(path));
      if (length !== undefined) path.push(length - 1);
    }
    this.#skip(/\s*\]{1,2}/y);
    const place: Place = { kind: 'header', start, key: start, from: start, to: this.#at };
    if (isArray) {
      // The header of an existing array points to its last element.
      if (typeof path.at(-1) === 'number') path.pop();
      const name = pointer(path);
      const index = this.#lengths.get(name) ?? 0;
      this.#lengths.set(name, index + 1);
      this.#record(path, place);
      path.push(index);
    }
    this.#record(path, place);
    return path;
  }

  /** `a.b = value` below a table. */
  #pair(table: readonly (string | number)[]): void {
    const path = [...table];
    const starts: number[] = [];
    for (const { name, at } of this.#keys()) {
      path.push(name);
      starts.push(at);
    }
    this.#skip(/\s*=[ \t]*/y);
    const from = this.#at;
    this.#value(path);
    const start = starts[0] ?? from;
    for (const [index, at] of starts.entries()) {
      this.#record(path.slice(0, table.length + index + 1), { kind: 'value', start, key: at, from, to: this.#at });
    }
  }

  #keys(): { name: string; at: number }[] {
    const keys: { name: string; at: number }[] = [];
    do {
      this.#skip(/[ \t.]*/y);
      const at = this.#at;
      const raw = this.#skip(/"(?:[^"\\]|\\.)*"|'[^']*'|[^\s=.\][]+/y);
      keys.push({ name: raw.startsWith('"') ? unquote(raw) : raw.startsWith("'") ? raw.slice(1, -1) : raw, at });
    } while (this.#skip(/[ \t]*\./y) !== '');
    return keys;
  }

  #value(path: readonly (string | number)[]): void {
    const opening = this.text[this.#at];
    if (opening === '[' || opening === '{') {
      this.#at++;
      for (let index = 0; ; index++) {
        this.#skip(/[\s,]*(#[^\n]*[\s,]*)*/y);
        const next = this.text[this.#at];
        if (next === undefined || next === ']' || next === '}') break;
        if (opening === '{') this.#pair(path);
        else {
          const from = this.#at;
          this.#value([...path, index]);
          this.#record([...path, index], { kind: 'value', start: from, key: from, from, to: this.#at });
        }
      }
      this.#at++;
      return;
    }
    const read = this.#skip(/"""[\s\S]*?(?<!\\)"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,\]}#]+(?: \d[^\s,\]}#]*)?/y);
    // Unreachable for valid TOML; prevents an endless loop.
    if (read === '') this.#at++;
  }

  #skip(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #record(path: readonly (string | number)[], place: Place): void {
    const name = pointer(path);
    const known = this.#places.get(name);
    this.#places.set(name, known === undefined ? place : { ...known, to: Math.max(known.to, place.to) });
  }

  /** Extends a table to the end of its content. */
  #extendTable(table: readonly (string | number)[]): void {
    if (table.length > 0) this.#record(table, { kind: 'header', start: this.#at, key: this.#at, from: this.#at, to: this.#at });
  }
}

function unquote(raw: string): string {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return raw.slice(1, -1);
  }
}
