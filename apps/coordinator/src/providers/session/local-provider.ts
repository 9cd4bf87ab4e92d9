/** `LocalProvider` and `LocalSlot` implement the interfaces of `provider-connection.ts` for a provider connected to this process. */
import type { JobMessage, KeyId, ModelOffer, RequestFrames, TrustLevel } from '@inference/protocol';
import type { ProviderMeasurements } from '../placement/provider-measurements.js';
import type { JobFinding, JobHandle, JobSink, ProviderConnection, ProviderSlot } from '../provider-connection.js';
import type { ReputationRegistry } from '../reputation/reputation-registry.js';
import type { ConnectedProviders } from './connected-providers.js';
import type { OnlineSession } from './provider-session.js';
import type { SealingKey } from './registration/admission.js';
import type { Registration } from './session-options.js';

interface LocalProviderDependencies {
  readonly connected: ConnectedProviders;
  readonly reputations: ReputationRegistry;
  readonly measurements: ProviderMeasurements;
}

export class LocalProvider implements ProviderConnection {
  readonly #session: OnlineSession;
  readonly #deps: LocalProviderDependencies;

  constructor(session: OnlineSession, deps: LocalProviderDependencies) {
    this.#session = session;
    this.#deps = deps;
  }

  get registration(): Registration {
    return this.#session.registration;
  }

  get models(): readonly ModelOffer[] {
    return this.#session.models;
  }

  get key(): SealingKey | null {
    return this.#session.evidence.key;
  }

  get acceptedKeyIds(): readonly KeyId[] {
    return this.#session.evidence.acceptedKeyIds;
  }

  get ownerAccountId(): string | null {
    return this.#session.ownerAccountId;
  }

  get trustLevel(): TrustLevel | null {
    return this.#session.evidence.verdict().level;
  }

  get isAttested(): boolean {
    return this.#session.evidence.isAttested;
  }

  get isDeviceChainVerified(): boolean {
    return this.#session.evidence.isDeviceChainVerified;
  }

  get isReplaced(): boolean {
    const current = this.#deps.connected.get(this.registration.identity.providerId);
    return current !== null && current !== this.#session;
  }

  get usedSlots(): number {
    return this.#session.jobs.usedSlots;
  }

  isProven(model: string): boolean {
    return this.#deps.measurements.isProven(this.#session, model);
  }

  isPlausibleRate(model: string, tokensPerSecond: number): boolean {
    return this.#deps.measurements.isPlausibleRate(this.#session, model, tokensPerSecond);
  }

  report(finding: JobFinding): void {
    const { connected, reputations, measurements } = this.#deps;
    const { providerId } = this.registration.identity;
    switch (finding.kind) {
      case 'busy':
        this.#session.backOff();
        return;
      case 'draining':
        this.#session.drain();
        return;
      case 'fault':
        reputations.recordFault(providerId, finding.fault, finding.reason);
        return;
      case 'slow':
        reputations.recordSlowAnswer(providerId);
        return;
      case 'protocol_broken':
        this.#session.reject('misbehaved', `the job's protocol was broken: ${finding.reason}`);
        return;
      case 'answer_verified':
        reputations.recordAnswer(providerId);
        connected.get(providerId)?.answerVerified();
        return;
      case 'answer_settled':
        this.#session.statistics.recordBilledJob(finding.completionTokens);
        this.#session.statistics.recordSignedWeights(finding.model, finding.weightsSha256);
        measurements.record(this.#session, finding);
        return;
      default:
        finding satisfies never;
    }
  }
}

export class LocalSlot implements ProviderSlot {
  readonly provider: LocalProvider;
  readonly #session: OnlineSession;
  #isUsed = false;

  /** Reserves a slot. Must be called in the same turn of the event loop as the choice of the provider. */
  constructor(provider: LocalProvider, session: OnlineSession) {
    this.provider = provider;
    this.#session = session;
    session.jobs.reserveSlot();
  }

  start(message: JobMessage, frames: RequestFrames, sink: JobSink): JobHandle {
    this.#use();
    this.#session.statistics.latestModel = message.context.model;
    return this.#session.jobs.start(message, frames, sink);
  }

  release(): void {
    if (this.#isUsed) return;
    this.#use();
    this.#session.jobs.releaseSlot();
  }

  #use(): void {
    if (this.#isUsed) throw new Error('a slot serves one job');
    this.#isUsed = true;
  }
}
