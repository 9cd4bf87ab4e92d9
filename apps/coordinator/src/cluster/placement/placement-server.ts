/**
 * `PlacementServer`: places requests of peers on providers connected here, and relays the jobs. Counterpart of `PlacementClient`.
 *
 * Requests of peers wait in the same queue as local requests. Also describes providers to peers, and applies their findings
 * (observations about a provider during a job).
 */
import { encodeFrame, FRAME_HEADER_BYTES, type JobMessage, type ProviderId, RequestFrames } from '@inference/protocol';
import { encodeDigest, type ProviderFilter } from '@inference/scheduler';
import type { NotPlacedReason, Placed, Placement, RequestQueue, SlotRequest } from '../../inference/queue/request-queue.js';
import { makesImages } from '../../inference/request/image-job.js';
import type { JobFinding, JobHandle, JobSink } from '../../providers/provider-connection.js';
import type { ProviderRegistry } from '../../providers/provider-registry.js';
import { encodeMessage } from '../json-message.js';
import type { PeerStream, StreamEvents } from '../peer.js';
import {
  type AskerMessage,
  type OwnerMessage,
  type PlacementRequestMessage,
  parseAskerMessage,
  parseDescribeRequest,
  parseFinding,
  parsePlacementRequest,
} from './placement-messages.js';
import { describeProvider } from './provider-description.js';
import { publishedModel } from './published-models.js';

interface PlacementServerOptions {
  readonly registry: ProviderRegistry;
  readonly requestQueue: RequestQueue;
  /** Called with a model whose current digest is sent in a reply. */
  readonly onDigestSent: (model: string) => void;
}

/** Maximum time from a placement to the last frame of the request. After it, the slot is released. */
const START_TIMEOUT_MS = 20_000;
/** Bytes that a frame adds to the content that it encrypts: header and authentication tag. */
const FRAME_OVERHEAD_BYTES = FRAME_HEADER_BYTES + 16;
const NOTHING = new Uint8Array();

export class PlacementServer {
  readonly #options: PlacementServerOptions;

  constructor(options: PlacementServerOptions) {
    this.#options = options;
  }

  /** Handles a stream of kind `placement`. */
  async serve(stream: PeerStream, header: Uint8Array): Promise<void> {
    const request = parsePlacementRequest(header);
    if (request === null) {
      stream.abort('bad_message');
      return;
    }
    const job = new RelayedJob(stream, this.#options.requestQueue, request.model);
    stream.listen(job);
    const placement = await this.#place(request, job.signal);
    if (placement === null) job.refuse('busy', null, this.#digest(request.model));
    else if (placement.kind === 'refused') job.refuse(placement.reason, placement.retryAfterMs);
    else this.#sendPlacement(placement, request.model, job);
  }

  /** Answers a request of kind `describe`. Empty: invalid request, ended session, or a provider that cannot get jobs. */
  describe(payload: Uint8Array): Uint8Array {
    const request = parseDescribeRequest(payload);
    const provider = request === null ? null : this.#options.registry.snapshot(request.provider_id);
    const isSame = provider !== null && provider.sessionId === request?.session_id;
    const description = isSame ? describeProvider(provider) : null;
    return description === null ? NOTHING : encodeMessage(description);
  }

  /** Handles a request of kind `finding`: applies a peer's finding to the provider's reputation and measurements. */
  receiveFinding(payload: Uint8Array): Uint8Array {
    const message = parseFinding(payload);
    if (message !== null) {
      const connection = this.#options.registry.placement.connection(message.provider_id, message.session_id);
      connection?.report(message.finding as JobFinding);
    }
    return NOTHING;
  }

  /** Null, for a request that does not wait: no slot is free, or, with `idle_only`, no provider is idle. */
  #place(message: PlacementRequestMessage, signal: AbortSignal): Placement | null | Promise<Placement> {
    const { requestQueue } = this.#options;
    const request = this.#slotRequest(message);
    if (message.idle_only) return requestQueue.placeOnIdleProvider(request);
    return message.wait_ms > 0 ? requestQueue.place(request, message.wait_ms, signal) : requestQueue.placeNow(request);
  }

  /** Current digest for a refused peer, whose stored digest is probably outdated. Null: no local provider serves the model. */
  #digest(model: string): string | null {
    const { registry, requestQueue } = this.#options;
    const published = publishedModel(model, registry, requestQueue);
    if (published === null) return null;
    this.#options.onDigestSent(model);
    return encodeDigest(published.digest);
  }

  #slotRequest(message: PlacementRequestMessage): SlotRequest {
    const { placement } = this.#options.registry;
    const { model, image } = message;
    const exclude = new Set<ProviderId>(message.exclude);
    if (image !== null) {
      const { pixels } = image;
      for (const providerId of placement.unfitForImages(model, (offer) => makesImages(offer, image, pixels))) exclude.add(providerId);
    }
    for (const accountId of message.excluded_owners) {
      for (const providerId of placement.providersOfOwner(model, accountId)) exclude.add(providerId);
    }
    return {
      model,
      accountId: message.account_id,
      providerSerial: message.provider_serial,
      providerId: message.provider_id,
      candidates: message.candidates === undefined ? null : new Set(message.candidates),
      filter: filterOf(message),
      sort: message.sort ?? null,
      exclude,
      trustFloor: message.trust_floor,
      hasClientFloor: message.own_floor,
      work: { promptTokens: message.prompt_tokens, completionTokens: message.completion_tokens },
      promptPrefixes: message.prefixes,
      revocable: message.revocable,
      retried: message.retried,
      loadedOnly: message.loaded_only,
      // The asking coordinator counts this wait in its own statistics.
      isCounted: true,
    };
  }

  #sendPlacement(placed: Placed, model: string, job: RelayedJob): void {
    const { registry } = this.#options;
    const { slot, estimate, why } = placed;
    const { registration, models, key, usedSlots, trustLevel, isAttested, ownerAccountId } = slot.provider;
    const { providerId } = registration.identity;
    const offer = models.find(({ id }) => id === model);
    const snapshot = registry.snapshot(providerId);
    // Something may have changed since the slot was reserved.
    if (offer === undefined || key === null || trustLevel === null || snapshot === null || job.signal.aborted) {
      slot.release();
      job.refuse('aborted', null);
      return;
    }
    job.placed(placed, {
      type: 'placed',
      provider: {
        provider_id: providerId,
        session_id: snapshot.sessionId,
        key_id: key.keyId,
        accepted_key_ids: [...slot.provider.acceptedKeyIds],
        offer,
        used_slots: usedSlots,
        trust_level: trustLevel,
        is_attested: isAttested,
        is_proven: slot.provider.isProven(model),
        max_plausible_tps: registry.placement.maxPlausibleRate(providerId, model),
        owner_account_id: ownerAccountId,
      },
      estimate: { firstTokenMs: estimate.firstTokenMs, completionMs: estimate.completionMs, costMs: estimate.costMs },
      why,
    });
  }
}

function filterOf({ filter }: PlacementRequestMessage): ProviderFilter | null {
  if (filter === undefined) return null;
  const {
    ignored_ids,
    ignored_serials,
    quantizations,
    serves_fallback_models: servesFallbackModels,
    serves_choices: servesChoices = false,
    images = 0,
  } = filter;
  return {
    ignoredIds: new Set(ignored_ids),
    ignoredSerials: new Set(ignored_serials),
    quantizations: quantizations === null ? null : new Set(quantizations),
    servesFallbackModels,
    servesChoices,
    images,
  };
}

/** A job with the request frames received so far. */
interface ReceivedRequest {
  readonly job: JobMessage;
  readonly frames: Uint8Array[];
  /** Number of frames that the `start` message announced. */
  readonly frameCount: number;
  /** Maximum total bytes of the frames that are still missing. */
  remainingBytes: number;
}

/** Maximum total bytes of the frames of a request. The schema limits `request_bytes`. */
function maxSealedBytes({ job, frames }: AskerMessage & { readonly type: 'start' }): number {
  return job.request_bytes + frames * FRAME_OVERHEAD_BYTES;
}

/** A placement request of a peer, and the job that follows. Relays messages between the peer and the provider. */
class RelayedJob implements StreamEvents, JobSink {
  readonly #stream: PeerStream;
  readonly #requestQueue: RequestQueue;
  readonly #model: string;
  readonly #waiting = new AbortController();
  #placed: Placed | null = null;
  #startTimer: NodeJS.Timeout | null = null;
  #start: ReceivedRequest | null = null;
  #handle: JobHandle | null = null;
  #startedAt = 0;
  #isOver = false;

  constructor(stream: PeerStream, requestQueue: RequestQueue, model: string) {
    this.#stream = stream;
    this.#requestQueue = requestQueue;
    this.#model = model;
  }

  /** Aborts when the peer cancels, closes the stream, violates the protocol or is too slow to send the request. */
  get signal(): AbortSignal {
    return this.#waiting.signal;
  }

  refuse(reason: NotPlacedReason | 'busy', retryAfterMs: number | null, digest: string | null = null): void {
    if (this.#isOver) return;
    // Peers of earlier versions do not know `no_vision`.
    const known = reason === 'no_vision' ? { reason: 'no_such_serial' as const, lacks_vision: true } : { reason };
    this.#send({ type: 'refused', ...known, retry_after_ms: retryAfterMs, ...(digest === null ? {} : { digest }) });
    this.#end();
  }

  placed(placed: Placed, message: OwnerMessage & { type: 'placed' }): void {
    this.#placed = placed;
    this.#startTimer = setTimeout(() => this.#abort('not_started'), START_TIMEOUT_MS);
    this.#send(message);
  }

  message(bytes: Uint8Array, isText: boolean): void {
    if (this.#isOver) return;
    if (!isText) {
      this.#receiveFrame(bytes);
      return;
    }
    const message = parseAskerMessage(bytes);
    if (message?.type !== 'start' || this.#placed === null || this.#start !== null) {
      this.#abort('bad_message');
      return;
    }
    this.#start = { job: message.job, frames: [], frameCount: message.frames, remainingBytes: maxSealedBytes(message) };
    this.#startWhenComplete();
  }

  control(bytes: Uint8Array): void {
    if (this.#isOver) return;
    const message = parseAskerMessage(bytes);
    switch (message?.type) {
      case 'credit':
        this.#handle?.grant(message.bytes);
        return;
      case 'recall':
        this.#handle?.recall();
        return;
      case 'cancel':
        this.#stop();
        this.#end();
        return;
      default:
        this.#abort('bad_message');
    }
  }

  /** Nothing to do: `frame` ignores back-pressure, because the credit that the peer grants limits the queued bytes. */
  drained(): void {}

  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stop();
  }

  sending(): void {
    this.#send({ type: 'sending', sent: this.#handle?.isSent() ?? false });
  }

  accepted(): void {
    this.#send({ type: 'accepted' });
  }

  progressed(): void {
    this.#send({ type: 'progressed' });
  }

  frame(frame: Parameters<JobSink['frame']>[0]): void {
    if (!this.#isOver) this.#stream.send(encodeFrame(frame), false);
  }

  completed(message: Parameters<JobSink['completed']>[0]): void {
    this.#requestQueue.served(this.#model, performance.now() - this.#startedAt);
    this.#finish({ type: 'completed', message });
  }

  failed(failure: Parameters<JobSink['failed']>[0]): void {
    this.#finish({ type: 'failed', failure });
  }

  lost(): void {
    this.#finish({ type: 'lost' });
  }

  #receiveFrame(bytes: Uint8Array): void {
    const start = this.#start;
    if (start === null || this.#handle !== null || start.frames.length >= start.frameCount) {
      this.#abort('bad_message');
      return;
    }
    start.remainingBytes -= bytes.length;
    if (start.remainingBytes < 0) this.#abort('too_large');
    else {
      start.frames.push(bytes);
      this.#startWhenComplete();
    }
  }

  #startWhenComplete(): void {
    const start = this.#start;
    if (start === null || this.#placed === null || start.frames.length < start.frameCount) return;
    this.#clearTimer();
    this.#startedAt = performance.now();
    const handle = this.#placed.slot.start(start.job, RequestFrames.encoded(start.frames.splice(0)), this);
    this.#handle = handle;
    // If the connection broke, `start` has already called `lost`, which ended the stream.
    if (this.#isOver) handle.cancel();
  }

  #finish(message: OwnerMessage): void {
    if (this.#isOver) return;
    this.#send(message);
    this.#end();
  }

  /** Cancels the job, frees the slot, or ends the wait for a slot. */
  #stop(): void {
    this.#clearTimer();
    this.#waiting.abort();
    if (this.#handle !== null) this.#handle.cancel();
    else this.#placed?.slot.release();
  }

  #abort(reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stop();
    this.#stream.abort(reason);
  }

  #send(message: OwnerMessage): void {
    if (!this.#isOver) this.#stream.send(encodeMessage(message), true);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#clearTimer();
    this.#stream.close();
  }

  #clearTimer(): void {
    if (this.#startTimer !== null) clearTimeout(this.#startTimer);
    this.#startTimer = null;
  }
}
