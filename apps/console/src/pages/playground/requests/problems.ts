/** Texts for the user about failed model requests, each with a remedy. */

export interface Problem {
  readonly title: string;
  readonly text: string;
  /** `after`: seconds to wait; null: none. */
  readonly remedy:
    | { readonly kind: 'retry'; readonly after: number | null }
    | { readonly kind: 'link'; readonly href: string; readonly label: string }
    /** The user must add credits. The request can then be repeated. */
    | { readonly kind: 'deposit' }
    /** The request must be changed. */
    | { readonly kind: 'change' };
}

/** Outcome of a failed request. `status`: HTTP status; null if there was no error response. */
export interface RequestFailure {
  readonly kind: 'failed';
  readonly status: number | null;
  readonly problem: Problem;
}

export interface ApiFailure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfter: number | null;
}

const RETRY = { kind: 'retry', after: null } as const;

/** Text and remedy for an error response of the API. */
export function problemFromFailure({ status, code, message, retryAfter }: ApiFailure): Problem {
  const wait = { kind: 'retry', after: retryAfter } as const;
  const soon = retryAfter === null ? 'Try again in a moment.' : `Try again in ${formatSeconds(retryAfter)}.`;
  switch (status) {
    case 401:
      return { title: 'The playground key expired', text: 'Try again with a new key. If that fails, sign in again.', remedy: RETRY };
    case 402:
      return message.includes('of this API key')
        ? {
            title: 'The playground key reached its spend limit',
            text: 'Playground keys are limited to one dollar. Try again with a new key, or lower the max tokens if one response could cost more.',
            remedy: RETRY,
          }
        : { title: 'Insufficient balance', text: message, remedy: { kind: 'deposit' } };
    case 403:
      return { title: 'Not allowed', text: message, remedy: { kind: 'change' } };
    case 404:
      return {
        title: 'Model not available',
        text: 'No connected machine serves this model now. Choose another model, or try again later.',
        remedy: { kind: 'change' },
      };
    case 413:
      return {
        title: 'The conversation is too large',
        text: 'Start a new conversation, or shorten the messages.',
        remedy: { kind: 'change' },
      };
    case 429:
      return { title: 'Too many requests', text: `The rate limit of your key is reached. ${soon}`, remedy: wait };
    case 502:
    case 504:
      return {
        title: 'The machine did not answer',
        text: `${message} You were not charged. A retry may use another machine.`,
        remedy: RETRY,
      };
    case 503:
      return { title: 'No machine is free', text: `${message} ${soon}`, remedy: wait };
    default:
      if (code === 'context_length_exceeded') {
        return {
          title: 'The conversation is too long for this model',
          text: 'Start a new conversation, or choose another model.',
          remedy: { kind: 'change' },
        };
      }
      if (status >= 500) return { title: 'The service failed', text: `${message} ${soon}`, remedy: wait };
      return { title: 'The request was refused', text: message, remedy: { kind: 'change' } };
  }
}

/** Text and remedy for an error event in a stream. */
export function problemFromStream(message: string): Problem {
  return {
    title: 'The response was interrupted',
    text: `${message} You pay only for delivered and signed output. The response is incomplete and cannot be verified.`,
    remedy: RETRY,
  };
}

export const CONNECTION_LOST: Problem = {
  title: 'Connection lost',
  text: 'Check your internet connection. Output that was already delivered may be charged.',
  remedy: RETRY,
};

export const TIMED_OUT: Problem = {
  title: 'The request timed out',
  text: 'No data arrived for a long time, so the request was cancelled.',
  remedy: RETRY,
};

/** For a stream that ended without signature, end event or error, for example because a proxy closed the connection. */
export const CUT_OFF: Problem = {
  title: 'The response is incomplete',
  text: 'The stream ended without a signature. The response may be incomplete and cannot be verified.',
  remedy: RETRY,
};

export const NO_ANSWER: Problem = {
  title: 'Unexpected response',
  text: 'The response is not in the format of the API. A proxy may have replaced it.',
  remedy: RETRY,
};

function formatSeconds(count: number): string {
  return count === 1 ? 'a second' : `${count} seconds`;
}
