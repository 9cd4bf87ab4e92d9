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
  /** Network address of the connection in the form of `networkOf`; null: unknown. */
  readonly network: string | null;
  /** Account that the provider earns for; null: none. */
  readonly ownerAccountId: string | null;
  readonly registration: Registration;
  /** `online`, or the lasting reason why the provider takes no jobs. */
  readonly status: ProviderStatus;
  /** Reason why the provider gets no job now, for any request; null: available. */
  readonly unavailableReason: UnavailableReason | null;
  /** Set while an operator quarantines the provider. */
  readonly quarantine: OperatorQuarantine | null;
  readonly trust: TrustVerdict;
  /** Whether the newest challenge was answered in time. */
  readonly isAttested: boolean;
  /** Whether the manufacturer's certificate chain holds for the enclave key. */
  readonly isDeviceChainVerified: boolean;
  /** Newest signed posture. */
  readonly posture: Posture | null;
  /** Stored evidence of device management for this key, with its verified chains. */
  readonly device: DeviceFindings | null;
  /** The newest challenge that was answered correctly. */
  readonly lastChallenge: ChallengeTranscript | null;
  /** Null after the expiry of the sealing key. */
  readonly key: SealingKey | null;
  /** Accepted model offers. */
  readonly models: readonly ModelOffer[];
  /** Rejected model offers, each with a reason. */
  readonly refusedModels: ModelsRefused['models'];
  /** Model of the newest job if still served, else the first served model. */
  readonly currentModel: string | null;
  /** Availability reported by the provider. */
  readonly availability: ReportedAvailability;
  /** Owner commands: whether the agent supports and permits commands, and the reported settings. */
  readonly remoteControl: { readonly isSupported: boolean; readonly isAllowed: boolean; readonly settings: MachineSettings | null };
  /** End of the pause after the provider reported full slots, in milliseconds; 0: no pause. */
  readonly backoffUntil: number;
  /** Pauses in a row since the last verified answer. */
  readonly backoffCount: number;
  /** Slots in use, including reserved slots. */
  readonly usedSlots: number;
  /** Time of the last byte received, in milliseconds. */
  readonly lastHeardAt: number;
  readonly statistics: StatisticsSnapshot;
  readonly counters: Readonly<SessionCounters>;
}

/** Counts since the connection began, and the load reported by the provider. */
interface StatisticsSnapshot {
  readonly placements: number;
  readonly requestsServed: number;
  readonly tokensGenerated: number;
  /** Running jobs, as reported by the provider. */
  readonly reportedJobs: number;
  /** Rates in tokens per second, as reported by the provider, limited to plausible values. */
  readonly decodeTps: number | null;
  readonly prefillTps: number | null;
  readonly host: HostState;
  /** SHA-256 of the weights in the newest verified receipt, by model. */
  readonly signedWeights: ReadonlyMap<string, string>;
}

/** Facts of the registry about a session. */
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
