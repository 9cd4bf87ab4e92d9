/** `ClusterTransport`: interface of publishing on subjects, at most once, in order per publisher. The link adds reliability. */
export interface ClusterTransport {
  readonly isConnected: boolean;
  /** Largest payload of a message. */
  readonly maxPayloadBytes: number;
  /** Published bytes that the operating system has not accepted. */
  readonly bufferedBytes: number;
  /**
   * Publishes a message, whose bytes must stay unchanged until the next turn of the event loop. Never throws.
   *
   * @param noRespondersTo Subject that gets an empty message if nobody subscribes to `subject`.
   * @returns False if disconnected, over `maxPayloadBytes`, or with a full buffer.
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

/** `isNoResponders`: a message of the server: nobody subscribed. Payloads share memory, so copy small ones before storing them. */
export type MessageHandler = (subject: string, payload: Uint8Array, isNoResponders: boolean) => void;

/** A report of the transport for the log. Never contains payloads. */
export interface TransportEvent {
  readonly event: 'connected' | 'disconnected' | 'dial_failed' | 'server_error' | 'handler_failed';
  /** Host and port, without credentials. */
  readonly server?: string;
  readonly reason?: string;
}
