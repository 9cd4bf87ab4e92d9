/** IPC messages that the daemon and model processes of every kind exchange. */
export type ModelProcessRequest<Settings> = { readonly type: 'load'; readonly settings: Settings } | { readonly type: 'ping' };

export type ModelProcessEvent<Facts> =
  | { readonly type: 'loaded'; readonly facts: Facts }
  | { readonly type: 'load_failed'; readonly message: string }
  | { readonly type: 'pong' };
