/** `ProviderSocket`: WebSocket of a provider with message size limits, back-pressure, a maximum of unsent bytes, and liveness checks. */
import {
  type CoordinatorMessage,
  FRAME_HEADER_BYTES,
  type JobId,
  type JobMessage,
  MAX_FRAME_PAYLOAD_BYTES,
  MAX_REQUEST_BYTES,
  MAX_TEXT_FRAME_BYTES,
  MAX_UNSENT_BYTES,
  type RejectionCode,
  type RejectionReason,
  type RequestFrames,
} from '@inference/protocol';
import type { RawData, WebSocket } from 'ws';

/** The byte stream below the WebSocket, for write batching and back-pressure. */
export interface Transport {
  cork(): void;
  uncork(): void;
  on(event: 'drain', listener: () => void): unknown;
}

/** Maximum message size of the WebSocket library. Above this program's limits, so that a slightly longer message gets an exact error. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Number of buffered bytes above which request frames wait for the stream's `drain` event. */
const SEND_WINDOW_BYTES = 1024 * 1024;
/** Requests up to this size are sent before larger queued ones, while at most two windows are buffered. */
const MAX_SMALL_JOB_BYTES = 64 * 1024;
/** Number of unsent bytes above which the provider gets no new job: a request without images could exceed `MAX_UNSENT_BYTES`. */
const MAX_UNSENT_BEFORE_JOB = MAX_UNSENT_BYTES - MAX_REQUEST_BYTES;
/** Number of unsent bytes from which pings get no pong: pongs would accumulate if the peer does not read. */
const MAX_UNSENT_BEFORE_PONG = SEND_WINDOW_BYTES + 64 * 1024;
/** Time limit for the rejection message and the closing handshake. */
const CLOSE_MS = 2000;

/** Rejection message for a provider that does not read what it is sent. */
export const TOO_SLOW = 'the provider does not take what is sent to it';

/** Why the coordinator closed a connection. */
export interface Rejection {
  readonly code: RejectionCode;
  readonly reason: RejectionReason | null;
  /** Invalid field of the provider's message, for the log. Null if the message had none. Never text of the provider. */
  readonly field: string | null;
  readonly message: string;
}

interface SocketEvents {
  text(text: string): void;
  binary(bytes: Uint8Array): void;
  pingOrPong(): void;
  /** {@link ProviderSocket.isBacklogged} changed. */
  backlogChanged(): void;
  /** The stream drained. Called for each job that had unsent frames before the drain. */
  sendProgressed(jobId: JobId): void;
  /** Called once. `rejection` is null if the provider closed the connection, on an error, and after `terminate`. */
  closed(rejection: Rejection | null): void;
}

/** A job whose request is not completely sent. */
interface UnsentJob {
  /** First message of the job; null after it was sent. */
  message: JobMessage | null;
  readonly frames: RequestFrames;
}

export class ProviderSocket {
  readonly #socket: WebSocket;
  readonly #events: SocketEvents;
  readonly #now: () => number;
  readonly #transport: Transport;
  #lastHeardAt: number;
  #unansweredPings = 0;
  #ended = false;
  /** In the order of sending. */
  readonly #unsent = new Map<JobId, UnsentJob>();
  #unsentJobBytes = 0;
  #wasBacklogged = false;
  #isGathering = false;
  /**
   * Amount written to the stream, and the highest part of it that the operating system has accepted.
   *
   * In bytes, but texts in UTF-16 code units, as in `bufferedAmount`: Node.js encodes them only when it writes them.
   */
  #written = 0;
  #sentBytes = 0;
  #sentAtLastCheck = 0;
  #stalledChecks = 0;

  constructor(socket: WebSocket, transport: Transport, now: () => number, events: SocketEvents) {
    this.#socket = socket;
    this.#transport = transport;
    this.#events = events;
    this.#now = now;
    this.#lastHeardAt = now();
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('ping', (data) => this.#ping(data));
    socket.on('pong', () => this.#receivePingOrPong());
    // An 'error' is always followed by 'close', which ends the session.
    socket.on('error', () => {});
    socket.on('close', () => this.#end(null));
    transport.on('drain', () => this.#drained());
  }

  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  /** Pings since data last arrived or a send made progress. */
  get unansweredPings(): number {
    return this.#unansweredPings;
  }

  get open(): boolean {
    return !this.#ended;
  }

  send(message: CoordinatorMessage): void {
    this.#sendBounded(JSON.stringify(message));
  }

  /** Whether a request without images could exceed the maximum of unsent bytes. A single request with images may exceed the maximum. */
  get isBacklogged(): boolean {
    return this.#unsentJobBytes + this.#socket.bufferedAmount > MAX_UNSENT_BEFORE_JOB;
  }

  /** Sends a job and its request frames: at once if the window has room, otherwise as the stream drains. */
  sendJob(message: JobMessage, frames: RequestFrames): void {
    const { bytes } = frames;
    const window = bytes <= MAX_SMALL_JOB_BYTES ? 2 * SEND_WINDOW_BYTES : SEND_WINDOW_BYTES;
    const isNext = this.#unsent.size === 0 || bytes <= MAX_SMALL_JOB_BYTES;
    if (isNext && this.#socket.bufferedAmount + bytes <= window) {
      this.send(message);
      for (const frame of frames) this.#sendBounded(frame);
      return;
    }
    if (this.#ended) return;
    this.#unsent.set(message.context.job_id, { message, frames });
    this.#unsentJobBytes += bytes;
    this.#sendUnsent();
  }

  /** False while the job's first message is in the send queue; true for all other jobs. */
  hasSent(jobId: JobId): boolean {
    return this.#unsent.get(jobId)?.message == null;
  }

  withdrawJob(jobId: JobId): void {
    const job = this.#unsent.get(jobId);
    if (job === undefined) return;
    this.#unsent.delete(jobId);
    this.#unsentJobBytes -= job.frames.bytes;
    this.#reportBacklog();
  }

  /** Number of consecutive calls without send progress. Counts calls instead of time, because a suspended process sends nothing. */
  checkProgress(): number {
    this.#countSentBytes();
    const hasProgressed = this.#sentBytes > this.#sentAtLastCheck;
    this.#sentAtLastCheck = this.#sentBytes;
    this.#stalledChecks = hasProgressed || this.#socket.bufferedAmount === 0 ? 0 : this.#stalledChecks + 1;
    // The pong cannot arrive before the provider has read the bytes sent ahead of the ping.
    if (hasProgressed && this.#socket.bufferedAmount > 0) this.#unansweredPings = 0;
    return this.#stalledChecks;
  }

  ping(): void {
    if (this.#ended) return;
    this.#unansweredPings++;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  /** Sends the reason if possible, and ends the session. Later messages are ignored. */
  reject(code: RejectionCode, message: string, reason: RejectionReason | null = null, field: string | null = null): void {
    if (this.#ended) return;
    const closeCode = code === 'too_large' ? 1009 : code === 'shutting_down' ? 1001 : 1008;
    if (this.#socket.readyState === this.#socket.OPEN && this.#socket.bufferedAmount < MAX_UNSENT_BYTES) {
      const exact = reason === null ? {} : { reason };
      this.#socket.send(JSON.stringify({ type: 'rejected', code, ...exact, message: message.slice(0, 1024) }));
      this.#socket.close(closeCode, code);
      const timer = setTimeout(() => this.#socket.terminate(), CLOSE_MS);
      timer.unref();
      this.#socket.once('close', () => clearTimeout(timer));
    } else {
      this.#socket.terminate();
    }
    this.#end({ code, reason, field, message });
  }

  /** Ends the session without a closing handshake. */
  terminate(): void {
    this.#writeGathered();
    this.#socket.terminate();
    this.#end(null);
  }

  #ping(data: Buffer): void {
    this.#receivePingOrPong();
    if (!this.#ended && this.#socket.bufferedAmount < MAX_UNSENT_BEFORE_PONG) this.#socket.pong(data);
  }

  #receivePingOrPong(): void {
    this.#heard();
    if (!this.#ended) this.#events.pingOrPong();
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#heard();
    if (this.#ended) return;
    const bytes = data as Buffer;
    if (isBinary) {
      if (bytes.length > FRAME_HEADER_BYTES + MAX_FRAME_PAYLOAD_BYTES) this.reject('too_large', `binary frame of ${bytes.length} bytes`);
      else this.#events.binary(bytes);
    } else if (bytes.length > MAX_TEXT_FRAME_BYTES) this.reject('too_large', `message of ${bytes.length} bytes`);
    else this.#events.text(bytes.toString('utf8'));
  }

  #sendBounded(data: string | Uint8Array): void {
    if (this.#ended || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#gatherWrites();
    this.#socket.send(data);
    this.#written += data.length;
    if (this.#socket.bufferedAmount > MAX_UNSENT_BYTES) this.reject('too_slow', TOO_SLOW);
  }

  /** Collects the writes of this turn of the event loop, so that all jobs' messages need one system call. */
  #gatherWrites(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#transport.cork();
    setImmediate(() => this.#writeGathered());
  }

  #writeGathered(): void {
    if (!this.#isGathering) return;
    this.#isGathering = false;
    this.#transport.uncork();
  }

  #drained(): void {
    const waiting = [...this.#unsent.keys()];
    this.#sendUnsent();
    for (const jobId of waiting) this.#events.sendProgressed(jobId);
  }

  #sendUnsent(): void {
    for (const [jobId, job] of this.#unsent) {
      if (this.#ended || this.#socket.bufferedAmount >= SEND_WINDOW_BYTES) break;
      this.#sendFramesOf(jobId, job);
    }
    this.#reportBacklog();
  }

  #sendFramesOf(jobId: JobId, job: UnsentJob): void {
    if (job.message !== null) this.send(job.message);
    job.message = null;
    while (!this.#ended && this.#socket.bufferedAmount < SEND_WINDOW_BYTES) {
      const frame = job.frames.take();
      if (frame === null) break;
      this.#unsentJobBytes -= frame.length;
      this.#sendBounded(frame);
    }
    if (job.frames.count === 0) this.#unsent.delete(jobId);
  }

  #reportBacklog(): void {
    if (this.#ended || this.isBacklogged === this.#wasBacklogged) return;
    this.#wasBacklogged = !this.#wasBacklogged;
    this.#events.backlogChanged();
  }

  /** `bufferedAmount` includes WebSocket headers and pings, `#written` does not. So sending only those is no progress. */
  #countSentBytes(): void {
    this.#sentBytes = Math.max(this.#sentBytes, this.#written - this.#socket.bufferedAmount);
  }

  #heard(): void {
    this.#lastHeardAt = this.#now();
    this.#unansweredPings = 0;
  }

  #end(rejection: Rejection | null): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#unsent.clear();
    this.#unsentJobBytes = 0;
    this.#events.closed(rejection);
  }
}
