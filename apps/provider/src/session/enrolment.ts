/**
 * `Enrolment` requests a device management profile from the coordinator while this Mac is not enrolled.
 *
 * The owner installs the profile. On a simulated Mac, the profile is installed automatically.
 */
import type { CoordinatorMessage, ProviderMessage, TrustMessage } from '@inference/protocol';

export type EnrolmentEvent =
  | { readonly type: 'offered'; readonly url: string; readonly expiresAt: number }
  | { readonly type: 'installed' }
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'failed'; readonly error: unknown };

interface EnrolmentOptions {
  readonly send: (message: ProviderMessage) => void;
  /** Installs the profile at a one-time address. Null if the owner does. */
  readonly install: ((url: string) => Promise<void>) | null;
  readonly onEvent: (event: EnrolmentEvent) => void;
  readonly askAfterMs?: number;
}

/** Delay of the first request after the trust message, in milliseconds. */
const ASK_AFTER_MS = 2000;
/** No request is sent while an offer is valid, for half an hour. */
const ASK_AGAIN_MS = 30 * 60_000;
const TRY_LATER_MS = 30_000;

export class Enrolment {
  readonly #options: EnrolmentOptions;
  #isMissing = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: EnrolmentOptions) {
    this.#options = options;
  }

  onTrust(trust: TrustMessage): void {
    this.#isMissing = trust.parts.some(({ reason }) => reason === 'not_enrolled');
    if (this.#isMissing && this.#timer === null) this.#askIn(this.#options.askAfterMs ?? ASK_AFTER_MS);
    if (!this.#isMissing) this.stop();
  }

  onAnswer(answer: CoordinatorMessage & { readonly type: 'enrolment' | 'enrolment_refused' }): void {
    const { install, onEvent } = this.#options;
    if (answer.type === 'enrolment_refused') {
      onEvent({ type: 'refused', reason: answer.reason });
      if (answer.reason === 'try_later') this.#askIn(TRY_LATER_MS);
      return;
    }
    this.#askIn(ASK_AGAIN_MS);
    onEvent({ type: 'offered', url: answer.url, expiresAt: answer.expires_at });
    if (install === null) return;
    install(answer.url).then(
      () => onEvent({ type: 'installed' }),
      (error: unknown) => {
        onEvent({ type: 'failed', error });
        if (this.#isMissing) this.#askIn(TRY_LATER_MS);
      },
    );
  }

  /** Sends no more requests. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #askIn(ms: number): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#isMissing) this.#options.send({ type: 'enrolment_request' });
    }, ms);
    this.#timer.unref();
  }
}

const INSTALL_TIMEOUT_MS = 20_000;

/** Installs profiles on the simulated Mac of the management server at this address. */
export function simulatedInstaller(managementUrl: string, signal: AbortSignal): (url: string) => Promise<void> {
  return async (url) => {
    const response = await fetch(`${managementUrl}/simulation/v1/install`, {
      method: 'POST',
      body: JSON.stringify({ profile_url: url }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(INSTALL_TIMEOUT_MS)]),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`the simulated management server answered with status ${response.status}`);
  };
}
