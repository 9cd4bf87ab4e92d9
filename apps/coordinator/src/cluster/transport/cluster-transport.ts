/**
 * `ClusterTransport`: interface to publish and subscribe by subject. `NatsTransport` implements it.
 *
 * Messages may be lost, but arrive at most once and in the publisher's order. Links (`PeerLink`) add reliability.
 */
export interface ClusterTransport {
  readonly isConnected: boolean;
  readonly maxPayloadBytes: number;
  /** Published bytes not yet accepted by the operating system. */
  readonly bufferedBytes: number;
  /**
   * Publishes a message. Its bytes must not change until the next turn of the event loop. Never throws.
   *
   * @param noRespondersTo Subject on which the server reports that `subject` has no subscriber.
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
 * Handles a message. A payload is a view of a larger buffer, so copy it before you store it.
 *
 * `isNoResponders`: not a message of a peer, but the server's report that a subject has no subscriber.
 */
export type MessageHandler = (subject: string, payload: Uint8Array, isNoResponders: boolean) => void;

/** Event of the transport for the log, without payloads. */
export interface TransportEvent {
  readonly event: 'connected' | 'disconnected' | 'dial_failed' | 'server_error' | 'handler_failed';
  /** Host and port, without credentials. */
  readonly server?: string;
  readonly reason?: string;
}
