/**
 * Builds the `trust` messages that tell a provider its trust level, the state of each part and the remedies. `LastReported` skips
 * repetitions.
 */
import { actionableParts, type TrustMessage } from '@inference/protocol';
import type { ProviderStatus } from '../placement/provider-status.js';
import type { OperatorQuarantine } from '../placement/quarantine.js';
import { remedyFor } from '../verification/remedies.js';
import type { TrustPart, TrustVerdict } from '../verification/trust-policy.js';

const STATUS_REMEDIES: Readonly<Record<Exclude<ProviderStatus, 'online'>, string>> = {
  draining: 'The provider is draining and gets no new requests. Restart it to serve again.',
  away: 'This machine is not accepting requests: it is paused, outside its schedule, or in use. See the reason.',
  quarantined:
    'Responses of this provider did not verify, or requests failed repeatedly, so it gets no requests. Check its log and update it. It gets requests again at the given time, or when the operator of the network clears its failures.',
  cooling_down: 'Requests failed on this machine, so it gets none for a short time. If this happens again, check its log.',
  untrusted: 'This machine is connected, but it is not trusted and gets no requests.',
  below_min_trust_level: 'This network sends requests only to machines of trust level hardware, and this one has trust level self_signed.',
  low_battery: 'The battery is low. Connect this Mac to power.',
  key_expired: 'The sealing key has expired and no new one came. Restart the provider; check that the clock of this Mac is right.',
};

/** Maximum of the message's schema, in characters. */
const MAX_REMEDY_LENGTH = 512;

/** The provider's current restriction by its reputation. */
export type RestrictionMessage = NonNullable<TrustMessage['restraint']>;

/** Remembers the last message, so that a provider receives only changes. */
export class LastReported {
  #verdict: TrustVerdict | null = null;
  #status: ProviderStatus | null = null;
  #restriction = '';
  #quarantineReason: string | null = null;
  #text = '';

  /** Returns the message to send; null if nothing changed. */
  nextMessage(
    verdict: TrustVerdict,
    status: ProviderStatus,
    restriction: RestrictionMessage | null,
    quarantine: OperatorQuarantine | null,
  ): TrustMessage | null {
    const restricted = restriction === null ? '' : `${restriction.state} ${restriction.until}`;
    const reason = quarantine?.reason ?? null;
    if (this.#verdict === verdict && this.#status === status && this.#restriction === restricted && this.#quarantineReason === reason)
      return null;
    this.#verdict = verdict;
    this.#status = status;
    this.#restriction = restricted;
    this.#quarantineReason = reason;
    const message = trustMessage(verdict, status, restriction, quarantine);
    const text = JSON.stringify(message);
    if (text === this.#text) return null;
    this.#text = text;
    return message;
  }
}

/** Message for a verdict and status. The owner reads the reason of an operator's quarantine. */
export function trustMessage(
  verdict: TrustVerdict,
  status: ProviderStatus,
  restriction: RestrictionMessage | null = null,
  quarantine: OperatorQuarantine | null = null,
): TrustMessage {
  return {
    type: 'trust',
    trust_level: verdict.level ?? 'none',
    routable: status === 'online',
    status,
    ...(status === 'online' ? {} : { status_remedy: statusRemedy(verdict, status, quarantine) }),
    ...(restriction === null ? {} : { restraint: restriction }),
    parts: verdict.parts.map(partOf),
  };
}

/** For insufficient trust, adds the remedy of the first part that the owner can act on. */
function statusRemedy({ parts }: TrustVerdict, status: Exclude<ProviderStatus, 'online'>, quarantine: OperatorQuarantine | null): string {
  if (status === 'quarantined' && quarantine !== null) return quarantineRemedy(quarantine);
  const text = STATUS_REMEDIES[status];
  if (status !== 'untrusted' && status !== 'below_min_trust_level') return text;
  const [gap] = actionableParts(parts);
  return gap === undefined || gap.reason === null ? text : `${text} ${remedyFor(gap.reason, gap.detail)}`.slice(0, MAX_REMEDY_LENGTH);
}

function quarantineRemedy({ reason }: OperatorQuarantine): string {
  return `The operator of this network has taken this machine out of routing: "${reason}" It gets requests again when the operator releases it.`;
}

function partOf({ name, state, reason, detail }: TrustPart): TrustMessage['parts'][number] {
  if (reason === null) return { name, state };
  return { name, state, reason, ...(detail === null ? {} : { detail }), remedy: remedyFor(reason, detail) };
}
