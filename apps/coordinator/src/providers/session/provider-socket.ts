/** `ProviderSocket`: WebSocket of a provider with size limits, back-pressure, a bound for unsent bytes, and liveness. */
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

/** The byte stream below a WebSocket: gathers writes and reports back-pressure. */
export interface Transport {
  cork(): void;
  uncork(): void;
  on(event: 'drain', listener: () => void): unknown;
}

/** Maximum message bytes of the WebSocket library. Above this program's limit, so that slightly longer messages get an error message. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
/** Buffered bytes above which request frames wait for the stream's `drain`. */
const SEND_WINDOW_BYTES = 1024 * 1024;
/** Requests up to this size overtake larger queued requests, up to twice the window. */
const MAX_SMALL_JOB_BYTES = 64 * 1024;
/** Unsent bytes above which the provider gets no new job: a request without images would exceed `MAX_UNSENT_BYTES`. */
const MAX_UNSENT_BEFORE_JOB = MAX_UNSENT_BYTES - MAX_REQUEST_BYTES;
/** Unsent bytes above which pings are not answered, because pongs would accumulate for a peer that does not read. */
const MAX_UNSENT_BEFORE_PONG = SEND_WINDOW_BYTES + 64 * 1024;
/** Time for the rejection message and the closing handshake, in milliseconds. */
const CLOSE_MS = 2000;

/** Message for the owner of a provider whose session ends for lack of progress. */
export const TOO_SLOW = 'the provider does not take what is sent to it';

/** Why the coordinator ended a connection. */
export interface Rejection {
  readonly code: RejectionCode;
  readonly reason: RejectionReason | null;
  /** Explanation for the provider's owner. */
  readonly message: string;
}

interface SocketEvents {
  text(text: string): void;
  binary(bytes: Uint8Array): void;
  /** A ping or a pong arrived. */
  heard(): void;
  /** The provider has become unable to take a new job, or able again; see {@link ProviderSocket.isBacklogged}. */
  backlogChanged(): void;
  /** The stream drained. Called for each job that had unsent frames, including jobs sent completely by this drain. */
  sendProgressed(jobId: JobId): void;
  /** Called once. `rejection`: from {@link ProviderSocket.reject}; null for a remote close, an error or `terminate`. */
  closed(rejection: Rejection | null): void;
}

/** A job whose request is not sent completely. */
interface UnsentJob {
  /** Null after sending. */
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
  /** In sending order. */
  readonly #unsent = new Map<JobId, UnsentJob>();
  #unsentJobBytes = 0;
  #wasBacklogged = false;
  #isGathering = false;
  /** Payload bytes handed to the stream, and the highest count of them that the operating system has accepted. */
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
    socket.on('pong', () => this.#recordActivity());
    // Each error is followed by 'close', which ends the session.
    socket.on('error', () => {});
    socket.on('close', () => this.#end(null));
    transport.on('drain', () => this.#drained());
  }

  get lastHeardAt(): number {
    return this.#lastHeardAt;
  }

  /** Pings since the last received data or send progress. */
  get unansweredPings(): number {
    return this.#unansweredPings;
  }

  get open(): boolean {
    return !this.#ended;
  }

  send(message: CoordinatorMessage): void {
    this.#sendBounded(JSON.stringify(message));
  }

  /** Whether a request without images would exceed the bound of unsent bytes. A request with images may exceed the bound once. */
  get isBacklogged(): boolean {
    return this.#unsentJobBytes + this.#socket.bufferedAmount > MAX_UNSENT_BEFORE_JOB;
  }

  /** Sends a job and its request frames: in one call if the window suffices, else frames wait for the drain. */
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

  /** False while the job's first message waits in the send queue; true for all other jobs. */
  hasSent(jobId: JobId): boolean {
    return this.#unsent.get(jobId)?.message == null;
  }

  /** Drops the unsent part of a job's request. */
  withdrawJob(jobId: JobId): void {
    const job = this.#unsent.get(jobId);
    if (job === undefined) return;
    this.#unsent.delete(jobId);
    this.#unsentJobBytes -= job.frames.bytes;
    this.#noteBacklog();
  }

  /** Consecutive calls with unsent bytes and no progress. Counted in calls, because a suspended process sends nothing. */
  checkProgress(): number {
    this.#countSentBytes();
    const hasProgressed = this.#sentBytes > this.#sentAtLastCheck;
    this.#sentAtLastCheck = this.#sentBytes;
    this.#stalledChecks = hasProgressed || this.#socket.bufferedAmount === 0 ? 0 : this.#stalledChecks + 1;
    // A pong waits behind the bytes that the provider is reading.
    if (hasProgressed && this.#socket.bufferedAmount > 0) this.#unansweredPings = 0;
    return this.#stalledChecks;
  }

  ping(): void {
    if (this.#ended) return;
    this.#unansweredPings++;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  /** Ends the session, after sending the reason if possible. Later messages are not read. */
  reject(code: RejectionCode, message: string, reason: RejectionReason | null = null): void {
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
    this.#end({ code, reason, message });
  }

  /** Ends the session without a closing handshake, for a dead peer. */
  terminate(): void {
    this.#writeGathered();
    this.#socket.terminate();
    this.#end(null);
  }

  #ping(data: Buffer): void {
    this.#recordActivity();
    if (!this.#ended && this.#socket.bufferedAmount < MAX_UNSENT_BEFORE_PONG) this.#socket.pong(data);
  }

  #recordActivity(): void {
    this.#heard();
    if (!this.#ended) this.#events.heard();
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

  /** Holds writes until the end of this turn of the event loop: the messages of all jobs are then one system call. */
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
    this.#noteBacklog();
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

  #noteBacklog(): void {
    if (this.#ended || this.isBacklogged === this.#wasBacklogged) return;
    this.#wasBacklogged = !this.#wasBacklogged;
    this.#events.backlogChanged();
  }

  /** WebSocket headers and pings count only as unsent, never as progress. */
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
