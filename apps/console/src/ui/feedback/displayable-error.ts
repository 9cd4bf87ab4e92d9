/** Base class of errors with a text for the user other than `message`. */
export abstract class DisplayableError extends Error {
  /** Text for the user, with advice if there is any. */
  abstract readonly displayText: string;
  /** Request id to quote to the operator; null if quoting one would not help. */
  abstract readonly supportId: string | null;
}
