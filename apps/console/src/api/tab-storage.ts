/** Name in the session storage of the playground's stored conversation, which sign-out removes. */
export const KEPT_CONVERSATION = 'playground-conversation';
