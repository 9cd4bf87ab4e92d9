/** Key in `sessionStorage` of the playground's conversation. Shared, because signing out removes the conversation. */
export const KEPT_CONVERSATION = 'playground-conversation';
