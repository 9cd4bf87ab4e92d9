/** `ClusterTransport`: interface of publishing on subjects, at most once, in order per publisher. The link adds reliability. */
export interface ClusterTransport {
  readonly isConnected: boolean;
  /** Largest payload of a message. */
  readonly maxPayloadBytes: number;
  /** Published bytes that the operating system has not accepted. */
  readonly bufferedBytes: number;
  /**
   * Publishes a message, unchanged until the next turn of the event loop. Never throws.
   *
   * False: not sent, because disconnected, over `maxPayloadBytes`, or `bufferedBytes` at its maximum.
   *
   * `noRespondersTo`: own subject that gets an empty message if nobody subscribes to `subject` ({@link MessageHandler}).
   */
  publish(subject: string, payload: Uint8Array, noRespondersTo?: string): boolean;
  /** Subscribes across reconnects. `*` stands for one token, a last `>` for one or more. Returns the cancellation. */
  subscribe(subject: string, handler: MessageHandler): () => void;
  /** Calls back on each change of `isConnected`. Returns the cancellation. */
  onState(listener: (isConnected: boolean) => void): () => void;
  /** Calls back when the outgoing buffer has emptied after `bufferedBytes` was above zero. Returns the cancellation. */
  onDrain(listener: () => void): () => void;
  close(): Promise<void>;
}

/** The payload may be retained, but shares memory with other messages: retain a copy of small ones. `isNoResponders`: a reply
 * of the server, without payload, for a message that nobody subscribed to. */
export type MessageHandler = (subject: string, payload: Uint8Array, isNoResponders: boolean) => void;

/** A report of the transport for the log. Never contains payloads. */
export interface TransportEvent {
  readonly event: 'connected' | 'disconnected' | 'dial_failed' | 'server_error' | 'handler_failed';
  /** Host and port, without credentials. */
  readonly server?: string;
  readonly reason?: string;
}
