/** `locate` finds the positions of keys and values in a valid TOML 1.0 document, which the TOML parser does not tell. */

export interface Place {
  /** A `header` begins a table or an array of tables. A `value` belongs to a key or an array. */
  readonly kind: 'header' | 'value';
  /** Offset of the statement: of the header, the whole dotted key or the array element. */
  readonly start: number;
  /** Offset to name in an error: of the path's own part of a dotted key, otherwise `start`. */
  readonly errorAt: number;
  /**
   * Offsets of the value. The value of a table extends from the header to the end of the table's last value, the value of an array of
   * tables to the end of its last header.
   */
  readonly valueStart: number;
  readonly valueEnd: number;
}

/** Places by JSON pointer (RFC 6901), such as `/availability/windows/0/from`. */
export type Places = ReadonlyMap<string, Place>;

/** JSON pointer of a path of keys and indices. */
export function pointer(path: readonly (string | number)[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

export function locate(text: string): Places {
  return new TomlScanner(text).scan();
}

/** Line and column of an offset, both from 1. */
export function lineAndColumn(text: string, offset: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') };
}

class TomlScanner {
  readonly #places = new Map<string, Place>();
  /** Elements so far of each array of tables. Key: its JSON pointer. */
  readonly #lengths = new Map<string, number>();
  #at = 0;

  constructor(private readonly text: string) {}

  scan(): Places {
    let table: (string | number)[] = [];
    for (;;) {
      this.#take(/[ \t\r\n]*(#[^\n]*[ \t\r\n]*)*/y);
      if (this.#at >= this.text.length) return this.#places;
      if (this.text[this.#at] === '[') {
        table = this.#header();
      } else this.#pair(table);
      this.#extendTable(table);
    }
  }

  /** Reads `[a.b]` or `[[a.b]]`. Returns the path of the table, which ends with an index for `[[a.b]]`. */
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
    this.#take(/\s*\]{1,2}/y);
    const place: Place = { kind: 'header', start, errorAt: start, valueStart: start, valueEnd: this.#at };
    if (isArray) {
      // For an existing array, the loop above added the index of its last element.
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

  /** Reads `a.b = value`. */
  #pair(table: readonly (string | number)[]): void {
    const path = [...table];
    const starts: number[] = [];
    for (const { name, at } of this.#keys()) {
      path.push(name);
      starts.push(at);
    }
    this.#take(/\s*=[ \t]*/y);
    const valueStart = this.#at;
    this.#value(path);
    const start = starts[0] ?? valueStart;
    for (const [index, at] of starts.entries()) {
      this.#record(path.slice(0, table.length + index + 1), { kind: 'value', start, errorAt: at, valueStart, valueEnd: this.#at });
    }
  }

  /** Parts of a dotted key, with their offsets. */
  #keys(): { name: string; at: number }[] {
    const keys: { name: string; at: number }[] = [];
    do {
      this.#take(/[ \t.]*/y);
      const at = this.#at;
      const raw = this.#take(/"(?:[^"\\]|\\.)*"|'[^']*'|[^\s=.\][]+/y);
      keys.push({ name: raw.startsWith('"') ? unquote(raw) : raw.startsWith("'") ? raw.slice(1, -1) : raw, at });
    } while (this.#take(/[ \t]*\./y) !== '');
    return keys;
  }

  /** Records the places within an array or inline table. The caller records the value itself. */
  #value(path: readonly (string | number)[]): void {
    const opening = this.text[this.#at];
    if (opening === '[' || opening === '{') {
      this.#at++;
      for (let index = 0; ; index++) {
        this.#take(/[\s,]*(#[^\n]*[\s,]*)*/y);
        const next = this.text[this.#at];
        if (next === undefined || next === ']' || next === '}') break;
        if (opening === '{') this.#pair(path);
        else {
          const start = this.#at;
          this.#value([...path, index]);
          this.#record([...path, index], { kind: 'value', start, errorAt: start, valueStart: start, valueEnd: this.#at });
        }
      }
      this.#at++;
      return;
    }
    const read = this.#take(/"""[\s\S]*?(?<!\\)"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,\]}#]+(?: \d[^\s,\]}#]*)?/y);
    // Unreachable for valid TOML; prevents an endless loop.
    if (read === '') this.#at++;
  }

  /** Reads the match of a sticky pattern at the current offset; empty where nothing matches. */
  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  /** If the path has a place already, only extends its value. */
  #record(path: readonly (string | number)[], place: Place): void {
    const name = pointer(path);
    const known = this.#places.get(name);
    this.#places.set(name, known === undefined ? place : { ...known, valueEnd: Math.max(known.valueEnd, place.valueEnd) });
  }

  #extendTable(table: readonly (string | number)[]): void {
    if (table.length > 0) {
      const at = this.#at;
      this.#record(table, { kind: 'header', start: at, errorAt: at, valueStart: at, valueEnd: at });
    }
  }
}

function unquote(raw: string): string {
  try {
    return JSON.parse(raw) as string;
  } catch {
    return raw.slice(1, -1);
  }
}
