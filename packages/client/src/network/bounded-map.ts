/** Map with a maximum size, which drops the least recently written entry. */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  /** Writing an existing key makes its entry the newest. */
  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#maxSize && oldest !== undefined) this.#entries.delete(oldest);
  }

  /** Removes the entry; with `value`, only if the entry has this value. */
  delete(key: Key, value?: Value): void {
    if (value === undefined || this.#entries.get(key) === value) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
