/** `parseHashes`: parses SHA-256 hashes, one per line, also in the output format of `shasum -a 256`. */

const MAX = 64;

type ParsedHashes =
  | { readonly kind: 'hashes'; readonly hashes: readonly string[] }
  /** `problem`: error message for the user. */
  | { readonly kind: 'refused'; readonly problem: string };

export function parseHashes(text: string): ParsedHashes {
  const hashes: string[] = [];
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '') continue;
    const [, hash] = /^\s*([0-9a-f]{64})(?:\s.*)?$/i.exec(line) ?? [];
    if (hash === undefined) return { kind: 'refused', problem: `Line ${index + 1} is not a SHA-256: 64 hexadecimal digits.` };
    hashes.push(hash.toLowerCase());
  }
  const different = [...new Set(hashes)];
  if (different.length > MAX) return { kind: 'refused', problem: `At most ${MAX} files.` };
  return { kind: 'hashes', hashes: different };
}
