/** `SupervisedHelper` restarts a helper with backoff, while requests wait. Another key after a restart is a permanent failure. */
import { setTimeout as delay } from 'node:timers/promises';
import { EnclaveError } from '../contract/errors.js';
import type { HelperKind, KeyProtection, ResultOf } from '../contract/replies.js';
import { CONTRACT_VERSION, type Operation, type ParametersOf } from '../contract/requests.js';
import type { OnEnclaveEvent } from './events.js';
import { HelperProcess } from './helper-process.js';

const MIN_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 5_000;
/** Run time after which the backoff is reset. */
const HEALTHY_MS = 30_000;

/** Identity reported by the helper. Fixed for the life of the client. */
interface HelperIdentity {
  readonly kind: HelperKind;
  /** base64 of the x963 public key. */
  readonly publicKey: string;
  readonly keyProtection: KeyProtection;
  readonly secureEnclave: boolean;
  /** Versions of plain receipts that the helper signs. */
  readonly receiptVersions: readonly number[];
  /** Versions of end-to-end receipts that the helper signs. */
  readonly e2eReceiptVersions: readonly number[];
}

interface SupervisedHelperOptions {
  readonly command: readonly string[];
  readonly timeoutMs: number;
  readonly onEvent: OnEnclaveEvent;
}

export class SupervisedHelper {
  readonly #options: SupervisedHelperOptions;
  readonly #closing = new AbortController();
  /** Current helper, or the pending start. Rejects when the start fails; the next start is then running. */
  #ready: Promise<HelperProcess>;
  /** Live helper after its handshake. */
  #serving: HelperProcess | null = null;
  /** Identity from the first handshake; null before. */
  #identity: HelperIdentity | null = null;
  /** Why no helper is used any more, `closed` or `key_changed`; null while the client works. */
  #failed: EnclaveError | null = null;
  /** Restarts since the last healthy helper. */
  #failures = 0;

  /** Starts the helper and reads its identity. Throws {@link EnclaveError}; the first start is not retried. */
  static async open(options: SupervisedHelperOptions): Promise<{ helper: SupervisedHelper; identity: HelperIdentity }> {
    const helper = new SupervisedHelper(options);
    try {
      await helper.#ready;
    } catch (error) {
      await helper.close();
      throw error;
    }
    return { helper, identity: helper.#identity as HelperIdentity };
  }

  private constructor(options: SupervisedHelperOptions) {
    this.#options = options;
    this.#ready = this.#start();
  }

  /** Sends a request to the current helper, or to the next helper during a restart. Throws {@link EnclaveError}. */
  async request<Op extends Operation>(op: Op, parameters: ParametersOf<Op>, signal?: AbortSignal): Promise<ResultOf<Op>> {
    this.#refuseIfFailed();
    const helper = this.#serving ?? (await this.#whenReady(signal));
    // Full timeout: the wait for a restart must not count, or a healthy helper would be killed.
    return helper.request(op, parameters, this.#options.timeoutMs, signal);
  }

  /** Ends the helper; resolves when its process has exited. Pending requests fail with `closed`. */
  async close(): Promise<void> {
    const reason = new EnclaveError('closed', 'the enclave client is closed');
    this.#failed ??= reason;
    this.#closing.abort(reason);
    const helper = await this.#ready.catch(() => null);
    await helper?.close(reason);
  }

  /** The next helper after its handshake. Rejects after `timeoutMs`, on an abort, and once the client has failed. */
  async #whenReady(signal: AbortSignal | undefined): Promise<HelperProcess> {
    if (signal?.aborted) throw new EnclaveError('aborted', 'the request to the enclave helper was aborted', { cause: signal.reason });
    const timer = new AbortController();
    const signals = [timer.signal, this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    const tooLate = delay(this.#options.timeoutMs, undefined, { signal: AbortSignal.any(signals) }).then(
      () => {
        throw new EnclaveError('timeout', 'the enclave helper was not restarted in time');
      },
      () => {
        this.#refuseIfFailed();
        throw new EnclaveError('aborted', 'the request to the enclave helper was aborted', { cause: signal?.reason });
      },
    );
    // If the helper is ready first, the abort below rejects this promise unobserved.
    tooLate.catch(() => {});
    try {
      return await Promise.race([this.#ready, tooLate]);
    } finally {
      timer.abort();
    }
  }

  /** Starts a helper and performs the handshake. Rejects with {@link EnclaveError}. */
  async #start(): Promise<HelperProcess> {
    const startedAt = Date.now();
    let isHandshakeDone = false;
    const { command, onEvent } = this.#options;
    const helper = await HelperProcess.start(command, {
      onStderr: (line) => onEvent({ type: 'stderr', line }),
      onEnd: (reason) => {
        this.#serving = null;
        if (this.#failed?.code !== 'closed') onEvent({ type: 'ended', reason });
        if (!isHandshakeDone) return;
        if (Date.now() - startedAt > HEALTHY_MS) this.#failures = 0;
        this.#restart(helper.exited);
      },
    });
    try {
      await this.#handshake(helper);
      // The helper may have been killed since, for invalid output after its last reply.
      if (helper.ended !== null) throw helper.ended;
    } catch (error) {
      const reason = error instanceof EnclaveError ? error : new EnclaveError('internal', 'the handshake failed', { cause: error });
      await helper.close(reason);
      throw reason;
    }
    isHandshakeDone = true;
    this.#serving = helper;
    return helper;
  }

  /** Starts a helper after the previous helper's exit and a delay. Rejects with {@link EnclaveError}. */
  async #startAfter(lastExited: Promise<void>, delayMs: number): Promise<HelperProcess> {
    await lastExited;
    await delay(delayMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    this.#refuseIfFailed();
    return this.#start();
  }

  #refuseIfFailed(): void {
    if (this.#failed !== null) throw this.#failed;
  }

  /** Starts the next helper after the backoff and the previous exit. Repeats until a start succeeds or the client has failed. */
  #restart(lastExited: Promise<void>): void {
    if (this.#failed !== null) return;
    const delayMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#options.onEvent({ type: 'restarting', attempt: this.#failures, delayMs });
    this.#ready = this.#startAfter(lastExited, delayMs);
    this.#ready.catch(() => this.#restart(Promise.resolve()));
  }

  async #handshake(helper: HelperProcess): Promise<void> {
    const { timeoutMs, onEvent } = this.#options;
    const hello = await helper.request('hello', {}, timeoutMs, this.#closing.signal);
    if (hello.contract !== CONTRACT_VERSION) {
      const text = `the enclave helper speaks contract version ${hello.contract}, this agent ${CONTRACT_VERSION}`;
      throw new EnclaveError('contract_mismatch', text);
    }
    const result = await helper.request('identity', {}, timeoutMs, this.#closing.signal);
    const identity = {
      kind: hello.kind,
      publicKey: result.se_public_key,
      keyProtection: result.key_protection,
      secureEnclave: result.secure_enclave,
      receiptVersions: hello.receipts ?? [1],
      e2eReceiptVersions: hello.e2e_receipts ?? [],
    };
    if (this.#identity !== null && !sameIdentity(this.#identity, identity)) {
      this.#failed = new EnclaveError('key_changed', 'the enclave helper restarted with another key and is no longer used');
      onEvent({ type: 'failed_closed', reason: this.#failed });
      throw this.#failed;
    }
    if (identity.secureEnclave !== (identity.kind === 'secure_enclave')) {
      throw new EnclaveError('bad_reply', 'the enclave helper contradicts itself about having an enclave');
    }
    this.#identity = identity;
    onEvent({ type: 'started', kind: hello.kind, version: hello.version, pid: helper.pid });
  }
}

/** Whether two helpers have the same key. Versions of receipts may differ. */
function sameIdentity(a: HelperIdentity, b: HelperIdentity): boolean {
  return a.kind === b.kind && a.publicKey === b.publicKey && a.keyProtection === b.keyProtection && a.secureEnclave === b.secureEnclave;
}
