/** Key of the playground's conversation in `sessionStorage`. Used by the playground, and by sign-out to delete the conversation. */
export const KEPT_CONVERSATION = 'playground-conversation';
