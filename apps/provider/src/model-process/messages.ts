/** What the daemon and every process that holds a model say to each other, whatever the model is for. */

/** To the process. */
export type ModelOrder<Settings> = { readonly type: 'load'; readonly settings: Settings } | { readonly type: 'ping' };

/** From the process: how loading ended, and that it lives. */
export type ModelSign<Facts> =
  | { readonly type: 'loaded'; readonly facts: Facts }
  | { readonly type: 'load_failed'; readonly message: string }
  | { readonly type: 'pong' };
