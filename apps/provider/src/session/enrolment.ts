/**
 * `Enrolment` asks the coordinator for an enrolment profile, which puts this Mac under its device management.
 *
 * Asks while the coordinator reports this Mac as not enrolled. The owner installs the profile; a simulated Mac installs it itself.
 */
import type { CoordinatorMessage, ProviderMessage, TrustMessage } from '@inference/protocol';

export type EnrolmentEvent =
  | { readonly type: 'offered'; readonly url: string; readonly expiresAt: number }
  | { readonly type: 'installed' }
  | { readonly type: 'refused'; readonly reason: string }
  | { readonly type: 'failed'; readonly error: unknown };

interface EnrolmentOptions {
  readonly send: (message: ProviderMessage) => void;
  /** Installs the profile at a one-time address. Null: the owner installs the profile. */
  readonly install: ((url: string) => Promise<void>) | null;
  readonly onEvent: (event: EnrolmentEvent) => void;
  /** Default: `ASK_AFTER_MS`. */
  readonly askAfterMs?: number;
}

/** Delay after a trust message. */
const ASK_AFTER_MS = 2000;
/** Delay after an offer, which is valid for as long. */
const ASK_AGAIN_MS = 30 * 60_000;
/** Delay after the refusal `try_later` or a failed installation. */
const TRY_LATER_MS = 30_000;

export class Enrolment {
  readonly #options: EnrolmentOptions;
  /** Whether the last trust message reported this Mac as not enrolled. */
  #isUnenrolled = false;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: EnrolmentOptions) {
    this.#options = options;
  }

  onTrust(trust: TrustMessage): void {
    this.#isUnenrolled = trust.parts.some(({ reason }) => reason === 'not_enrolled');
    if (!this.#isUnenrolled) this.stop();
    else if (this.#timer === null) this.#askIn(this.#options.askAfterMs ?? ASK_AFTER_MS);
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
        if (this.#isUnenrolled) this.#askIn(TRY_LATER_MS);
      },
    );
  }

  /** Cancels the next request. */
  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #askIn(ms: number): void {
    this.stop();
    this.#timer = setTimeout(() => {
      this.#timer = null;
      if (this.#isUnenrolled) this.#options.send({ type: 'enrolment_request' });
    }, ms);
    this.#timer.unref();
  }
}

const INSTALL_TIMEOUT_MS = 20_000;

/** Returns a function that lets the simulated management server install the profile at a URL. */
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
