/** `LinkError`: a request to a peer failed, or a stream could not be opened. `LossReason`: why a link was lost. */
export type LinkErrorCode =
  /** The peer is unreachable, restarted, or has closed the link. */
  | 'link_lost'
  | 'timeout'
  | 'aborted'
  /** A limit of this side or of the peer is reached. */
  | 'overloaded'
  | 'too_large'
  | 'unknown_kind'
  /** The peer's handler failed. */
  | 'failed';

export class LinkError extends Error {
  override readonly name = 'LinkError';
  readonly code: LinkErrorCode;

  constructor(code: LinkErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export type LossReason =
  | 'silent'
  | 'transport_disconnected'
  | 'peer_restarted'
  | 'peer_closed'
  | 'no_responders'
  | 'violation'
  | 'overloaded'
  | 'closed';
