/** Errors of model requests as texts for the user, each with a remedy. */

export interface Problem {
  readonly title: string;
  readonly text: string;
  readonly remedy:
    | { readonly kind: 'retry' /** Seconds to wait. */; readonly after: number | null }
    | { readonly kind: 'link'; readonly href: string; readonly label: string }
    /** Something about the request must be changed. */
    | { readonly kind: 'change' };
}

export interface ApiFailure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfter: number | null;
}

const RETRY = { kind: 'retry', after: null } as const;

/** Error response of the API. */
export function problemOfFailure({ status, code, message, retryAfter }: ApiFailure): Problem {
  const wait = { kind: 'retry', after: retryAfter } as const;
  const soon = retryAfter === null ? 'Try again in a moment.' : `Try again in ${seconds(retryAfter)}.`;
  switch (status) {
    case 401:
      return {
        title: 'The playground was signed out',
        text: 'Its key has ended. Try again to get a new one; if that fails, sign in again.',
        remedy: RETRY,
      };
    case 402:
      return message.includes('of this API key')
        ? {
            title: "The playground's key has spent its limit",
            text: 'It is good for one dollar. Try again to get a new one, or lower the most tokens if one answer alone could cost more.',
            remedy: RETRY,
          }
        : {
            title: 'Insufficient balance',
            text: 'The balance does not cover the most that this request may cost. Add money, or lower the most tokens.',
            remedy: { kind: 'link', href: '/balance', label: 'Add money' },
          };
    case 403:
      return { title: 'Not allowed', text: message, remedy: { kind: 'change' } };
    case 404:
      return {
        title: 'Nobody serves this model now',
        text: 'The machines that served it have gone. Choose another model, or try again later.',
        remedy: { kind: 'change' },
      };
    case 413:
      return {
        title: 'The conversation is too large',
        text: 'Start a new conversation, or shorten the messages.',
        remedy: { kind: 'change' },
      };
    case 429:
      return { title: 'Too many requests', text: `You asked faster than your key may. ${soon}`, remedy: wait };
    case 502:
    case 504:
      return { title: 'The machine did not answer', text: `${message} Nothing was charged. Another machine may do better.`, remedy: RETRY };
    case 503:
      return { title: 'No machine is free', text: `${message} ${soon}`, remedy: wait };
    default:
      if (code === 'context_length_exceeded') {
        return {
          title: 'The conversation is too long for this model',
          text: 'Start a new one, or choose another model.',
          remedy: { kind: 'change' },
        };
      }
      if (status >= 500) return { title: 'The service failed', text: `${message} ${soon}`, remedy: wait };
      return { title: 'The request was refused', text: message, remedy: { kind: 'change' } };
  }
}

/** Error event inside a stream. */
export function problemInStream(message: string): Problem {
  return {
    title: 'The response was interrupted',
    text: `${message} You pay only for what was delivered and signed. Nothing after this point came, and what came cannot be verified.`,
    remedy: RETRY,
  };
}

export const NETWORK_LOST: Problem = {
  title: 'Connection lost',
  text: 'Check your connection to the network. If the answer had begun, what was delivered may still be charged.',
  remedy: RETRY,
};

export const SILENT: Problem = {
  title: 'Nothing came for a long time',
  text: 'The connection seems to be dead, and was ended from here.',
  remedy: RETRY,
};

/** The stream ended without a signature or an error: an intermediary closed it. */
export const CUT_OFF: Problem = {
  title: 'The answer was cut off',
  text: 'The stream ended before its signature came. What is shown may not be all of it, and cannot be verified.',
  remedy: RETRY,
};

export const NO_ANSWER: Problem = {
  title: 'This is no answer',
  text: 'What came is not in the format of the API. Something between here and the coordinator may have replaced it.',
  remedy: RETRY,
};

function seconds(count: number): string {
  return count === 1 ? 'a second' : `${count} seconds`;
}
