/** `Redactor` removes personal data from a bug report: members with secret names, and strings that are or look like secrets. */

export interface PersonalData {
  readonly home: string;
  readonly user: string;
  readonly host: string;
  /** Known secrets, verbatim: tokens, the serial number. */
  readonly secrets: readonly string[];
}

export const LEFT_OUT = '<left out>';

const SECRET_NAMES =
  /serial|udid|uuid|token|secret|password|passphrase|authorization|cookie|prompt|content|messages|^key$|_key$|earning|email/i;
/** Token counts are not tokens. */
const HARMLESS_NAMES = /_tokens$|^tokens$/;
/** Shorter words are part of too many others. User names match only whole words. */
const MIN_WORD_LENGTH = 4;
const MAX_TEXT = 2_000;

/** Each with its replacement, like `#known`. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [^-]+-----[\s\S]*?(?:-----END [^-]+-----|$)/g, '<key>'],
  [/\b(?:Bearer|Basic)\s+\S+/gi, '<token>'],
  [/\b(?:machine|service|session|sk|hf|ghp|key)[-_][A-Za-z0-9_-]{12,}/g, '<token>'],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/g, '<token>'],
  // User info, query and fragment of a URL may contain secrets.
  [/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']*@/gi, '$1'],
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s?#"']+)[?#][^\s"']*/gi, '$1'],
  [/[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}/g, '<email>'],
  [/(\/(?:Users|home)\/)[^/\s"':]+/g, '$1<user>'],
  [/\b(?!127\.)(?:\d{1,3}\.){3}\d{1,3}\b/g, '<address>'],
  [/\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b|\b(?:[0-9a-f]{1,4}:){1,6}:(?:[0-9a-f]{1,4})?(?::[0-9a-f]{1,4})*/gi, '<address>'],
  [/\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b/gi, '<address>'],
];

export class Redactor {
  readonly #known: readonly (readonly [RegExp, string])[];

  constructor({ home, user, host, secrets }: PersonalData) {
    const known: (readonly [string, string])[] = [
      ...secrets.map((secret) => [secret, '<secret>'] as const),
      [home, '~'],
      [host, '<host>'],
      [host.split('.')[0] ?? '', '<host>'],
      [user, '<user>'],
    ];
    this.#known = known
      .filter(([word]) => word.length >= MIN_WORD_LENGTH || (word === user && word.length > 1))
      .map(([word, replacement]) => [new RegExp(escapePattern(word, word === user || host.startsWith(word)), 'gi'), replacement] as const);
  }

  text(text: string): string {
    let redacted = text;
    for (const [pattern, replacement] of [...this.#known, ...PATTERNS]) redacted = redacted.replace(pattern, replacement);
    return redacted;
  }

  /**
   * Copies a JSON value without private data.
   *
   * @param names Permitted members of the outermost object. Null permits all but secrets.
   */
  value(value: unknown, names: ReadonlySet<string> | null = null): unknown {
    if (typeof value === 'string') return this.text(value).slice(0, MAX_TEXT);
    if (Array.isArray(value)) return value.map((each) => this.value(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => names === null || names.has(name))
        .map(([name, each]) => [this.text(name), isSecret(name, each) ? LEFT_OUT : this.value(each)]),
    );
  }
}

function isSecret(name: string, value: unknown): boolean {
  return SECRET_NAMES.test(name) && !HARMLESS_NAMES.test(name) && typeof value !== 'boolean' && value !== null;
}

/** Names match whole words only; a short name would otherwise remove half of the text. */
function escapePattern(word: string, isWholeWord: boolean): string {
  const literal = word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return isWholeWord ? `(?<![A-Za-z0-9])${literal}(?![A-Za-z0-9])` : literal;
}
