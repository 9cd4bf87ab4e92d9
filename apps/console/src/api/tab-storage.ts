/** Key of the playground's conversation in `sessionStorage`. Used by the playground, and by sign-out to delete the conversation. */
export const CONVERSATION_KEY = 'playground-conversation';
