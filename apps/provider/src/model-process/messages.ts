/** Messages between the daemon and every model process, text or image. */

export type ModelProcessRequest<Settings> = { readonly type: 'load'; readonly settings: Settings } | { readonly type: 'ping' };

/** Messages from the process: result of loading, and heartbeat. */
export type ModelProcessEvent<Facts> =
  | { readonly type: 'loaded'; readonly facts: Facts }
  | { readonly type: 'load_failed'; readonly message: string }
  | { readonly type: 'pong' };
