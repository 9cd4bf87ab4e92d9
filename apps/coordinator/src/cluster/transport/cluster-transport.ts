/**
 * `ClusterTransport`: interface of publish and subscribe by subject, which NATS implements.
 *
 * Messages may be lost, and arrive at most once, in the order of their publisher. Links add reliability.
 */
export interface ClusterTransport {
  readonly isConnected: boolean;
  /** Maximum payload of a message. */
  readonly maxPayloadBytes: number;
  /** Published bytes that the operating system has not accepted. */
  readonly bufferedBytes: number;
  /**
   * Publishes a message. Its bytes must not change until the next turn of the event loop. Never throws.
   *
   * @param noRespondersTo Subject on which the server reports, by an empty message, that nobody subscribes to `subject`.
   * @returns False if the message was dropped: disconnected, too large, or the buffer is full.
   */
  publish(subject: string, payload: Uint8Array, noRespondersTo?: string): boolean;
  /** Subscribes, also across reconnects. In the subject, `*` matches one token and a final `>` one or more. Returns a cancel function. */
  subscribe(subject: string, handler: MessageHandler): () => void;
  /** Calls back on each change of `isConnected`. Returns a cancel function. */
  onState(listener: (isConnected: boolean) => void): () => void;
  /** Calls back when the outgoing buffer has become empty. Returns a cancel function. */
  onDrain(listener: () => void): () => void;
  close(): Promise<void>;
}

/**
 * Handles a message. Payloads share memory, so copy small ones before storing them.
 *
 * `isNoResponders`: the NATS server reports that nobody subscribes to a subject.
 */
export type MessageHandler = (subject: string, payload: Uint8Array, isNoResponders: boolean) => void;

/** Event of the transport for the log, without payloads. */
export interface TransportEvent {
  readonly event: 'connected' | 'disconnected' | 'dial_failed' | 'server_error' | 'handler_failed';
  /** Host and port, without credentials. */
  readonly server?: string;
  readonly reason?: string;
}
