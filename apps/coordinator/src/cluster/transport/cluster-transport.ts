/**
 * `ClusterTransport`: publish and subscribe by subject, implemented by NATS.
 *
 * Messages may be lost, and arrive at most once, in the order of their publisher. Links add reliability.
 */
export interface ClusterTransport {
  readonly isConnected: boolean;
  /** Maximum payload of a message. */
  readonly maxPayloadBytes: number;
  /** Published bytes not yet accepted by the operating system. */
  readonly bufferedBytes: number;
  /**
   * Publishes a message. Its bytes must not change until the next turn of the event loop. Never throws.
   *
   * @param noRespondersTo Subject for the server's empty message that `subject` has no subscriber.
   * @returns False if the message was dropped: disconnected, too large, or the buffer is full.
   */
  publish(subject: string, payload: Uint8Array, noRespondersTo?: string): boolean;
  /** Subscribes, also across reconnects. `*` matches one token of the subject; a final `>`, one or more. Returns a cancel function. */
  subscribe(subject: string, handler: MessageHandler): () => void;
  /** Calls back on each change of `isConnected`. Returns a cancel function. */
  onState(listener: (isConnected: boolean) => void): () => void;
  /** Calls back when the outgoing buffer has become empty. Returns a cancel function. */
  onDrain(listener: () => void): () => void;
  close(): Promise<void>;
}

/**
 * Handles a message. Payloads share memory, so copy small payloads before storing them.
 *
 * `isNoResponders`: the NATS server reports a subject without subscribers.
 */
export type MessageHandler = (subject: string, payload: Uint8Array, isNoResponders: boolean) => void;

/** Event of the transport for the log, without payloads. */
export interface TransportEvent {
  readonly event: 'connected' | 'disconnected' | 'dial_failed' | 'server_error' | 'handler_failed';
  /** Host and port, without credentials. */
  readonly server?: string;
  readonly reason?: string;
}
