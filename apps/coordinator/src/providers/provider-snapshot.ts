/** `ProviderSnapshot`: readonly state of a connected provider, for routes, statistics and metrics. */
import type { MachineSettings, ModelOffer, ModelsRefused, Posture, ReportedAvailability } from '@inference/protocol';
import type { HostState, UnavailableReason } from '@inference/scheduler';
import type { ProviderStatus } from './placement/provider-status.js';
import type { OperatorQuarantine } from './placement/quarantine.js';
import type { OnlineSession } from './session/provider-session.js';
import type { SealingKey } from './session/registration/admission.js';
import type { ChallengeTranscript } from './session/registration/challenge-answer.js';
import type { Registration, SessionCounters } from './session/session-options.js';
import type { DeviceFindings } from './verification/evidence.js';
import type { TrustVerdict } from './verification/trust-policy.js';

export interface ProviderSnapshot {
  readonly sessionId: string;
  /** Network address of the connection, as returned by `networkOf`; null: unknown. */
  readonly network: string | null;
  /** Account that receives the provider's earnings; null: none. */
  readonly ownerAccountId: string | null;
  readonly registration: Registration;
  /** `online`, or the lasting reason why the provider gets no jobs. */
  readonly status: ProviderStatus;
  /** Why the provider can take no job at this moment; null if it can. */
  readonly unavailableReason: UnavailableReason | null;
  readonly quarantine: OperatorQuarantine | null;
  readonly trust: TrustVerdict;
  /** Whether the newest challenge that is not open any more was answered correctly and in time. */
  readonly isAttested: boolean;
  /** Whether the device's attestation certificate chain for the enclave key is valid. */
  readonly isDeviceChainVerified: boolean;
  /** Newest signed posture: whether the machine's protections, such as SIP, are on. */
  readonly posture: Posture | null;
  /** Device-management evidence for this key, with the results of chain verification. */
  readonly device: DeviceFindings | null;
  /** Newest correctly answered challenge. */
  readonly lastChallenge: ChallengeTranscript | null;
  /** Null after the sealing key has expired. */
  readonly key: SealingKey | null;
  /** Accepted model offers. */
  readonly models: readonly ModelOffer[];
  /** Rejected model offers, with reasons. */
  readonly refusedModels: ModelsRefused['models'];
  /** Model of the newest job if still served, else the first served model. Null: none. */
  readonly currentModel: string | null;
  readonly availability: ReportedAvailability;
  /** Whether the agent supports and permits owner commands, and the settings that it reported. */
  readonly remoteControl: { readonly isSupported: boolean; readonly isAllowed: boolean; readonly settings: MachineSettings | null };
  /** End of the backoff after the provider reported full slots, in milliseconds since 1970; 0: none. */
  readonly backoffUntil: number;
  /** Consecutive backoffs since the last verified answer. */
  readonly backoffCount: number;
  /** Slots in use, including reserved ones. */
  readonly usedSlots: number;
  /** Time of the newest message, ping or pong of the provider, in milliseconds since 1970. */
  readonly lastHeardAt: number;
  readonly statistics: StatisticsSnapshot;
  readonly counters: Readonly<SessionCounters>;
}

/** Counts since the connection began, and the load that the provider reports. */
interface StatisticsSnapshot {
  /** Jobs placed on the provider. */
  readonly placements: number;
  /** Billed jobs. */
  readonly requestsServed: number;
  /** Completion tokens of billed jobs. */
  readonly tokensGenerated: number;
  /** Running jobs, as the provider last reported. */
  readonly reportedJobs: number;
  /** Rates in tokens per second, reported by the provider and lowered to the plausible maximum. */
  readonly decodeTps: number | null;
  readonly prefillTps: number | null;
  readonly host: HostState;
  /** SHA-256 of the model's weights in the newest verified receipt, by model. */
  readonly signedWeights: ReadonlyMap<string, string>;
}

/** Facts about a session that depend on its provider's reputation. */
type RegistryState = Pick<ProviderSnapshot, 'status' | 'unavailableReason' | 'quarantine'>;

export function snapshotOf(session: OnlineSession, { status, unavailableReason, quarantine }: RegistryState): ProviderSnapshot {
  const { evidence, statistics } = session;
  return {
    sessionId: session.sessionId,
    network: session.network,
    ownerAccountId: session.ownerAccountId,
    registration: session.registration,
    status,
    unavailableReason,
    quarantine,
    trust: evidence.verdict(),
    isAttested: evidence.isAttested,
    isDeviceChainVerified: evidence.isDeviceChainVerified,
    posture: evidence.posture,
    device: evidence.device,
    lastChallenge: evidence.lastChallenge,
    key: evidence.key,
    models: session.models,
    refusedModels: session.refusedModels,
    currentModel: session.currentModel,
    availability: session.availability,
    remoteControl: {
      isSupported: session.ownerCommands?.isSupported ?? false,
      isAllowed: session.ownerCommands?.isAllowed ?? false,
      settings: session.ownerCommands?.settings ?? null,
    },
    backoffUntil: session.backoffUntil,
    backoffCount: session.backoffCount,
    usedSlots: session.jobs.usedSlots,
    lastHeardAt: session.lastHeardAt,
    statistics: {
      placements: statistics.placements,
      requestsServed: statistics.requestsServed,
      tokensGenerated: statistics.tokensGenerated,
      reportedJobs: statistics.reportedJobs,
      decodeTps: statistics.decodeTps,
      prefillTps: statistics.prefillTps,
      host: statistics.host,
      signedWeights: statistics.signedWeights,
    },
    counters: { ...session.counters },
  };
}
