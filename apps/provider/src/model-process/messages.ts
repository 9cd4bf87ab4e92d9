/** Messages between the daemon and every model process. */

/** To the process. */
export type ModelProcessRequest<Settings> = { readonly type: 'load'; readonly settings: Settings } | { readonly type: 'ping' };

/** From the process: result of loading, and heartbeat. */
export type ModelProcessEvent<Facts> =
  | { readonly type: 'loaded'; readonly facts: Facts }
  | { readonly type: 'load_failed'; readonly message: string }
  | { readonly type: 'pong' };
