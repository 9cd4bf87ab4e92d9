/** Map with a maximum size; the entry written first is dropped. */
export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #maxSize: number;

  constructor(maxSize: number) {
    this.#maxSize = maxSize;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  /** An existing entry counts as written now. */
  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#maxSize && oldest !== undefined) this.#entries.delete(oldest);
  }

  /** Without `value`: removes any. With `value`: removes the entry only if this is its value. */
  delete(key: Key, value?: Value): void {
    if (value === undefined || this.#entries.get(key) === value) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
