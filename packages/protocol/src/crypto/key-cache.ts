/** LRU cache of imported public keys. An import costs as much as hashing several kilobytes, and most jobs use the same few keys. */
import type { KeyObject } from 'node:crypto';

/** Wraps `importKey` with a cache of `capacity` keys. Failed imports are not cached. */
export function cachedImport(capacity: number, importKey: (raw: Uint8Array) => KeyObject): (raw: Uint8Array) => KeyObject {
  const keys = new Map<string, KeyObject>();
  return (raw) => {
    const name = Buffer.from(raw.buffer, raw.byteOffset, raw.length).toString('latin1');
    const known = keys.get(name);
    if (known !== undefined) {
      keys.delete(name);
      keys.set(name, known);
      return known;
    }
    const imported = importKey(raw);
    if (keys.size >= capacity) keys.delete(keys.keys().next().value as string);
    keys.set(name, imported);
    return imported;
  };
}
