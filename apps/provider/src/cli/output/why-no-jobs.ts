/** `jobOutlook`: whether this machine gets requests, as a headline, a reason and a next step for the owner. */
import type { AvailabilityStatus, DaemonStatus } from '../../control/daemon-status.js';
import { ownerStep } from '../../host/availability/owner-step.js';

export interface JobOutlook {
  /** `idle`: ready, but without demand. `waiting`: no requests for now. `needs_owner`: no requests, and the owner should look into it. */
  readonly state: 'serving' | 'idle' | 'waiting' | 'needs_owner';
  /** Without a full stop. */
  readonly headline: string;
  /** A sentence. Null if the headline is sufficient. */
  readonly reason: string | null;
  /** The most useful action of the owner. Null if none is needed. */
  readonly next: string | null;
}

const CLOSED = 'Not accepting requests';
const READY = 'Ready for requests';

export function jobOutlook(status: DaemonStatus): JobOutlook {
  const { connection, trust, models, availability, coordinator_view: view, running_jobs } = status;
  if (status.state === 'starting') return { state: 'waiting', headline: 'Starting', reason: 'The models are being loaded.', next: null };
  if (status.state === 'stopping') return { state: 'waiting', headline: 'Stopping', reason: 'Running requests finish first.', next: null };
  if (availability !== null && availability.state !== 'serving') {
    const [first] = availability.reasons;
    return { state: 'waiting', ...closedText(availability), next: first === undefined ? null : ownerStep(first.code) };
  }
  if (connection.state !== 'connected') {
    const problem = connection.problem === null ? '' : `: ${connection.problem}`;
    return {
      state: 'needs_owner',
      headline: CLOSED,
      reason: sentence(`Not connected to the coordinator${problem}`),
      next: 'The provider reconnects automatically. Find the cause: inference-provider doctor',
    };
  }
  if (models.length === 0)
    return {
      state: 'needs_owner',
      headline: CLOSED,
      reason: 'No model is served.',
      next: 'Choose a model: inference-provider models recommend. If you already did: inference-provider doctor',
    };
  if (trust === null) return { state: 'waiting', headline: 'Connected', reason: 'The coordinator is verifying this machine.', next: null };
  if (!trust.routable) {
    const remedy = trust.status_remedy ?? null;
    const reason = sentence(capitalize(trust.status.replaceAll('_', ' ')));
    return { state: 'needs_owner', headline: CLOSED, reason, next: remedy ?? 'See the reasons: inference-provider doctor' };
  }
  const step = view?.next_steps.find(({ code }) => code !== 'nothing');
  const next = step === undefined ? null : step.model === undefined ? step.text : `${sentence(step.text)} (${step.model})`;
  if (running_jobs > 0)
    return { state: 'serving', headline: `Serving ${running_jobs} ${running_jobs === 1 ? 'request' : 'requests'}`, reason: null, next };
  if (view === null) return { state: 'serving', headline: READY, reason: null, next };
  const open = view.models.filter(({ routable }) => routable);
  if (view.models.length > 0 && open.length === 0) {
    const [first] = view.models;
    const gate = (first?.gate ?? first?.state ?? 'unknown reason').replaceAll('_', ' ');
    return { state: 'waiting', headline: `${CLOSED} right now`, reason: sentence(capitalize(gate)), next };
  }
  const requestCount = open.reduce((all, { demand }) => all + demand.requests_last_5_minutes, 0);
  if (requestCount === 0) return { state: 'idle', headline: READY, reason: 'No requests for these models in the last five minutes.', next };
  const [last] = view.decisions;
  const isServing = view.decisions.some(({ outcome, last_at }) => outcome === 'chosen' && isRecent(last_at, view.server_time));
  const reason = last === undefined || last.outcome === 'chosen' || isServing ? null : `Last decision: ${sentence(last.text)}`;
  return { state: 'serving', headline: READY, reason, next };
}

/** The same period as in `requests_last_5_minutes`. */
const RECENT_MS = 5 * 60_000;

function isRecent(at: string, now: string): boolean {
  return Date.parse(now) - Date.parse(at) <= RECENT_MS;
}

/** Headline and reason while the owner, the schedule or the host condition prevents serving. */
export function closedText({ state, reasons }: AvailabilityStatus): Pick<JobOutlook, 'headline' | 'reason'> {
  const texts = reasons.map(({ text }) => sentence(text));
  const all = state === 'leaving' ? [...texts, 'Running requests finish first.'] : texts;
  return { headline: state === 'leaving' ? 'Not accepting new requests' : CLOSED, reason: all.join(' ') || null };
}

/** Headline and reason in one line: `Not accepting requests: paused until 18:00.` */
export function outlookText({ headline, reason }: Pick<JobOutlook, 'headline' | 'reason'>): string {
  return reason === null ? `${headline}.` : `${headline}: ${uncapitalize(reason)}`;
}

function sentence(text: string): string {
  return text === '' || /[.!?]$/.test(text) ? text : `${text}.`;
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Does not change names such as `FileVault` and `HTTP`. */
function uncapitalize(text: string): string {
  return /^[A-Z][a-z]*\b/.test(text) && !/^[A-Z][a-z]*[A-Z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}
