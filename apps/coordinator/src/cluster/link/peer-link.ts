/**
 * `PeerLink`: reliable requests and streams to one peer over NATS, which itself may lose messages.
 *
 * A link is lost when the peer is silent or restarts, or for another {@link LossReason}. All requests and streams then end, and a new
 * conversation starts, identified by new random numbers (epochs).
 */
import { Conversation } from './conversation.js';
import { type EnvelopeHeader, Flag, MIN_VERSION, readHeader, unsupportedVersion, VERSION } from './envelope.js';
import { EnvelopeSender } from './envelope-sender.js';
import { Epochs } from './epochs.js';
import { LinkError, type LossReason } from './link-error.js';
import { DEFAULT_LINK_LIMITS, type LinkCounts, type LinkEvent, type LinkLimits, type PeerLinkOptions } from './link-options.js';
import type { LinkStream, StreamHandlers } from './link-stream.js';
import type { Outbox } from './outbox.js';
import { PeerSilence, TICK_MS } from './peer-silence.js';
import type { RequestOptions } from './requests.js';

export type LinkState = 'connecting' | 'up' | 'lost' | 'closed';

/** Interval of attempts to reach a peer while the link is not up. */
const HELLO_INTERVAL_MS = 250;
/** Interval of attempts once the link has been lost for a second. */
const LOST_HELLO_INTERVAL_MS = 1_000;
/** Minimum time between two answers to envelopes outside the current conversation. */
const MIN_REPLY_INTERVAL_MS = 20;

export class PeerLink {
  readonly peer: string;
  readonly #options: PeerLinkOptions;
  readonly #limits: LinkLimits;
  readonly #epochs: Epochs;
  readonly #sender: EnvelopeSender;
  readonly #silence: PeerSilence;
  #state: LinkState = 'connecting';
  #windowBytes: number;
  #conversation: Conversation;
  #conversationStartedAt: number;
  #repliedAt = Number.NEGATIVE_INFINITY;
  readonly #cancellations: (() => void)[];
  #cancelTick: () => void = () => {};
  readonly #upListeners = new Set<() => void>();
  readonly #lostListeners = new Set<(reason: LossReason) => void>();
  readonly counts: LinkCounts = {
    sent: 0,
    received: 0,
    malformed: 0,
    unsupported: 0,
    stale: 0,
    duplicates: 0,
    gaps: 0,
    retransmitted: 0,
    losses: 0,
  };

  constructor(options: PeerLinkOptions) {
    const { clock, peer, randomEpoch, transport } = options;
    this.#options = options;
    this.peer = peer;
    this.#limits = { ...DEFAULT_LINK_LIMITS, ...options.limits };
    this.#windowBytes = options.windowBytes;
    this.#epochs = new Epochs(randomEpoch);
    this.#sender = new EnvelopeSender(options, this.#epochs, this.counts);
    this.#conversationStartedAt = clock.now();
    this.#silence = new PeerSilence(this.#conversationStartedAt);
    this.#conversation = this.#newConversation();
    this.#cancellations = [
      transport.onState((isConnected) => this.#transportChanged(isConnected)),
      transport.onDrain(() => this.#conversation.transfer.flush()),
    ];
    this.#sender.hello();
    this.#scheduleTick();
  }

  get state(): LinkState {
    return this.#state;
  }

  get streamCount(): number {
    return this.#conversation.streams.size;
  }

  get outbox(): Outbox {
    return this.#conversation.transfer.outbox;
  }

  /** Bytes in memory for the peer, in both directions. */
  get retainedBytes(): number {
    return this.#conversation.retainedBytes;
  }

  get windowBytes(): number {
    return this.#windowBytes;
  }

  set windowBytes(bytes: number) {
    this.#windowBytes = bytes;
    this.#conversation.windowBytes = bytes;
  }

  onUp(listener: () => void): () => void {
    this.#upListeners.add(listener);
    return () => this.#upListeners.delete(listener);
  }

  /** Calls back after all streams and requests have ended. */
  onLost(listener: (reason: LossReason) => void): () => void {
    this.#lostListeners.add(listener);
    return () => this.#lostListeners.delete(listener);
  }

  /** Sends a request to the peer. Rejects with a LinkError. The peer handles a request at most once. */
  request(kind: string, payload: Uint8Array, options: RequestOptions): Promise<Uint8Array> {
    if (!this.#canOpen) return Promise.reject(this.#lostError());
    return this.#conversation.requests.request(kind, payload, options);
  }

  /** Opens a stream with a short `header`. Throws a LinkError if the link is lost or overloaded, or the header too large. */
  openStream(kind: string, header: Uint8Array, handlers: StreamHandlers): LinkStream {
    if (!this.#canOpen) throw this.#lostError();
    return this.#conversation.streams.open(kind, header, handlers);
  }

  /** Closes the link permanently. If the link is up, notifies the peer. */
  close(): void {
    if (this.#state === 'closed') return;
    if (this.#state === 'up') {
      this.#conversation.transfer.flush();
      this.#conversation.transfer.sendBare(Flag.goodbye);
    }
    this.#restartConversation('closed');
    this.#cancelTick();
    for (const cancel of this.#cancellations) cancel();
  }

  /** Call when NATS reports that nobody subscribes to the peer's subject. Happens briefly when the peer changes NATS servers. */
  noResponders(): void {
    this.#silence.noResponders();
  }

  /** Processes an envelope that the peer published. Never throws. */
  receive(bytes: Uint8Array): void {
    if (this.#state === 'closed') return;
    const envelope = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const header = readHeader(envelope);
    if (header === null) {
      const version = unsupportedVersion(envelope);
      if (version === null) this.#malformed('envelope');
      else this.#unsupported(version);
      return;
    }
    switch (this.#epochs.classify(header.epoch, header.peerEpoch)) {
      case 'current':
        this.#receiveCurrent(header, envelope);
        return;
      case 'new_peer':
        if (this.#epochs.peer !== 0) this.#restartConversation('peer_restarted');
        this.#epochs.adopt(header.epoch);
        this.#receiveCurrent(header, envelope);
        return;
      case 'candidate':
      case 'unaware':
        this.#introduce(header.epoch, header.flags);
        return;
      case 'stale':
        this.counts.stale++;
        this.#introduce(0, header.flags);
        return;
    }
  }

  #receiveCurrent(header: EnvelopeHeader, envelope: Buffer): void {
    // A listener of the loss may have closed the link.
    if (this.#state === 'closed') return;
    this.counts.received++;
    this.#silence.heard();
    this.#sender.version = Math.min(VERSION, header.maxVersion);
    if ((header.flags & Flag.goodbye) !== 0) {
      this.#restartConversation('peer_closed');
      return;
    }
    const { transfer } = this.#conversation;
    if (this.#state !== 'up') this.#beginTransfer();
    // A listener of `onUp` may have closed the link.
    if (!transfer.isEnded) transfer.receive(header, envelope);
  }

  /** Replies to an envelope outside the current conversation, so that both sides learn each other's epochs. */
  #introduce(peerEpoch: number, flags: number): void {
    const now = this.#options.clock.now();
    if (now - this.#repliedAt < MIN_REPLY_INTERVAL_MS) return;
    this.#repliedAt = now;
    const reply = (flags & Flag.probe) !== 0 ? Flag.probeReply | Flag.probe : Flag.probe;
    if (peerEpoch !== 0 && peerEpoch === this.#epochs.peer) this.#conversation.transfer.sendBare(reply);
    else this.#sender.sendBare(reply, peerEpoch, 0, 0);
  }

  #scheduleTick(): void {
    this.#cancelTick = this.#options.clock.setTimer(TICK_MS, () => {
      this.#scheduleTick();
      this.#tick();
    });
  }

  #tick(): void {
    if (this.#state === 'closed') return;
    const now = this.#options.clock.now();
    const { isConnected } = this.#options.transport;
    const lossReason = this.#silence.advance(now, isConnected, this.#state);
    if (lossReason !== null) {
      this.#restartConversation(lossReason);
      return;
    }
    if (!isConnected) return;
    if (this.#state === 'up') {
      this.#conversation.transfer.tick(now);
      return;
    }
    const isLongLost = this.#state === 'lost' && now - this.#conversationStartedAt > HELLO_INTERVAL_MS * 4;
    if (now - this.#sender.sentAt >= (isLongLost ? LOST_HELLO_INTERVAL_MS : HELLO_INTERVAL_MS) - TICK_MS / 2) this.#sender.hello();
  }

  #transportChanged(isConnected: boolean): void {
    if (!isConnected) return;
    this.#silence.resumed();
    if (this.#state === 'up') this.#conversation.transfer.resynchronize();
    else this.#sender.hello();
  }

  #beginTransfer(): void {
    this.#state = 'up';
    this.#silence.restarted();
    this.#options.log({ event: 'up', peer: this.peer });
    this.#conversation.transfer.begin();
    for (const listener of this.#upListeners) this.#guardListener(listener);
  }

  /** Ends the conversation, and starts a new one. */
  #restartConversation(reason: LossReason): void {
    const wasUsable = this.#canOpen;
    this.#epochs.renew(reason === 'peer_restarted' || reason === 'peer_closed');
    this.#state = reason === 'closed' ? 'closed' : 'lost';
    this.#silence.restarted();
    this.#sender.version = MIN_VERSION;
    const ended = this.#conversation;
    this.counts.retransmitted += ended.transfer.outbox.retransmittedCount;
    this.#conversationStartedAt = this.#options.clock.now();
    this.#conversation = this.#newConversation();
    ended.end(reason);
    if (!wasUsable) return;
    this.counts.losses++;
    this.#options.log({ event: 'lost', peer: this.peer, reason });
    for (const listener of this.#lostListeners) this.#guardListener(() => listener(reason));
    if (this.#state === 'lost') this.#sender.hello();
  }

  get #canOpen(): boolean {
    return this.#state === 'up' || this.#state === 'connecting';
  }

  #lostError(): LinkError {
    return new LinkError('link_lost', `no link to ${this.peer}`);
  }

  #malformed(reason: string): void {
    this.#logAtPowersOfTen('malformed', reason, ++this.counts.malformed);
  }

  #unsupported(version: number): void {
    this.#logAtPowersOfTen('unsupported_version', `version ${version}`, ++this.counts.unsupported);
  }

  #logAtPowersOfTen(event: LinkEvent['event'], reason: string, count: number): void {
    if (/^10*$/.test(String(count))) this.#options.log({ event, peer: this.peer, reason, count });
  }

  #handlerFailed(kind: string, error: unknown): void {
    // Logs only the error's name, because its message could quote content.
    const name = error instanceof Error ? error.name : typeof error;
    this.#options.log({ event: 'handler_failed', peer: this.peer, reason: `${kind}: ${name}` });
  }

  #guardListener(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      this.#handlerFailed('listener', error);
    }
  }

  #newConversation(): Conversation {
    const { clock, handlers, transport } = this.#options;
    return new Conversation({
      peer: this.peer,
      transport,
      clock,
      sender: this.#sender,
      epochs: this.#epochs,
      counts: this.counts,
      windowBytes: this.#windowBytes,
      handlers,
      limits: this.#limits,
      onHandlerFailed: (kind, error) => this.#handlerFailed(kind, error),
      onOverloaded: () => this.#restartConversation('overloaded'),
      onViolation: (what) => {
        this.#malformed(what);
        this.#restartConversation('violation');
      },
    });
  }
}
