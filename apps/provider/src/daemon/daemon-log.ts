/** Log lines of the daemon: one function per kind of event. Prompts and outputs of jobs are not passed to these functions. */
import type { EnclaveEvent } from '@inference/enclave';
import { cleanLabel, type ModelsRefused, type OwnerAction, type TrustMessage } from '@inference/protocol';
import type { Logger } from 'pino';
import type { SettingsEvent } from '../config/live-settings.js';
import type { LinkStatus } from '../control/link-status.js';
import type { CurrentAvailability } from '../host/availability/availability-controller.js';
import type { ModelEvent } from '../jobs/serving/served-model.js';
import type { JobEvent } from '../jobs/session-jobs.js';
import { keptF16Text } from '../models/kv-cache-type.js';
import type { ModelFacts } from '../models/model-facts.js';
import type { EnrolmentEvent } from '../session/enrolment.js';
import type { SessionEvent } from '../session/stay-connected.js';
import type { RefusedModel } from './open-models.js';
import type { RemoteCommandEvent } from './remote-control.js';

export function logModel(log: Logger, event: ModelEvent): void {
  const { id } = event;
  switch (event.type) {
    case 'loading':
      log.info({ event: 'model_loading', model: id }, 'loading a model');
      return;
    case 'ready':
      log.info({ event: 'engine_ready', model: id, ms: event.milliseconds }, 'the engine has loaded the model');
      return;
    case 'unloaded':
      log.info({ event: 'model_unloaded', model: id }, 'a model was unloaded');
      return;
    case 'output':
      log.debug({ event: 'engine_output', model: id, line: event.line }, 'engine output');
      return;
    case 'died':
      log.error(
        { event: 'engine_died', model: id, reason: event.reason, retry_in_ms: event.retryInMs },
        'the engine crashed and is being restarted',
      );
      return;
    case 'disabled':
      log.error(
        { event: 'model_set_aside', model: id, reason: event.reason, retry_in_ms: event.retryInMs },
        `a model is not offered at the moment: ${event.reason}`,
      );
      return;
    default:
      event satisfies never;
  }
}

export function logAvailability(log: Logger, { state, reasons, nextChangeAt }: CurrentAvailability): void {
  const [first] = reasons;
  const facts = { event: 'availability', state, reasons: reasons.map(({ code }) => code), next_change_at: nextChangeAt };
  if (state === 'serving' || first === undefined) log.info(facts, 'this machine serves');
  else log.info(facts, `this machine ${state === 'leaving' ? 'finishes running requests' : 'accepts no requests'}: ${first.text}`);
}

export function logRemoteCommand(log: Logger, { action, refusal }: RemoteCommandEvent): void {
  const facts = { event: 'owner_command', ...(action === null ? {} : { action: actionText(action) }), refusal };
  if (refusal === null) log.info(facts, 'the owner changed a setting from the console');
  else log.warn(facts, `a command from the console was refused: ${refusal}`);
}

function actionText(action: OwnerAction): string {
  switch (action.kind) {
    case 'pause':
      return action.until === null ? 'pause' : `pause until ${dateText(action.until)}`;
    case 'resume':
      return 'resume';
    case 'set_schedule':
      return `schedule: ${action.schedule === '' ? 'always' : cleanLabel(action.schedule, 256, '-')}`;
    case 'set_model':
      return `${action.served ? 'serve' : 'stop serving'} ${action.model}`;
    default:
      return action satisfies never;
  }
}

export function logEnclave(log: Logger, event: EnclaveEvent): void {
  switch (event.type) {
    case 'started':
      log.info({ event: 'enclave_started', kind: event.kind, version: event.version }, 'the enclave helper is running');
      return;
    case 'stderr':
      log.warn({ event: 'enclave_stderr', line: event.line }, 'enclave helper output');
      return;
    case 'ended':
      if (event.reason.code !== 'closed') log.error({ event: 'enclave_ended', code: event.reason.code }, 'the enclave helper exited');
      return;
    case 'restarting':
      log.warn({ event: 'enclave_restarting', delay_ms: event.delayMs }, 'the enclave helper is being restarted');
      return;
    case 'failed_closed':
      log.fatal({ event: 'enclave_failed', code: event.reason.code }, 'the enclave can no longer be used');
      return;
    default:
      event satisfies never;
  }
}

export function logSession(log: Logger, event: SessionEvent): void {
  if (event.type === 'lost') {
    log.warn({ event: 'disconnected', reason: event.reason, retry_in_ms: event.retryInMs }, 'not connected to the coordinator');
    return;
  }
  const { code, reason, message, advice, retryInMs } = event;
  // A restarting coordinator is not an error: the provider reconnects within seconds.
  log[code === 'shutting_down' ? 'info' : 'error'](
    { event: 'rejected', code, reason, detail: message, retry_in_ms: retryInMs },
    `the coordinator ended the session: ${reason ?? code}. ${advice}`.trim(),
  );
}

/** With a `simulated` enclave, no trust level says anything about hardware. */
export function logTrust(log: Logger, trust: TrustMessage, simulated: boolean): void {
  const gaps = trust.parts.filter(({ state }) => state !== 'ok').map(({ name, state, reason }) => ({ name, state, reason }));
  const facts = { event: 'trust', trust_level: trust.trust_level, status: trust.status, routable: trust.routable, gaps };
  log[trust.routable || trust.status === 'draining' || trust.status === 'away' ? 'info' : 'error'](facts, trustSentence(trust, simulated));
}

export function logUnservableModel(log: Logger, { path, reason }: RefusedModel): void {
  log.error({ event: 'model_refused', path, reason }, `a model is not served: ${reason}`);
}

/** Logs that a model's files have another content than at the pull, or than when they were last hashed. */
export function logReplacedModel(log: Logger, { id, path }: Pick<ModelFacts, 'id' | 'path'>): void {
  log.warn({ event: 'model_replaced', model: id, path }, 'the content of a model file has changed');
}

export function logKeptF16(log: Logger, id: string): void {
  log.warn({ event: 'kv_cache_type', model: id, kv_cache_type: 'f16' }, keptF16Text(id));
}

/** The texts come from another machine and may reach a terminal. */
export function logModelsRefusedByCoordinator(log: Logger, refused: ModelsRefused['models']): void {
  for (const { id, reason, remedy } of refused) {
    const model = cleanLabel(id, 256, 'unknown');
    // Normal after a start: the hash is still being computed.
    const level = reason === 'hash_missing' ? 'info' : 'error';
    log[level]({ event: 'model_refused', model, reason }, `the network does not accept ${model}: ${cleanLabel(remedy, 512, reason)}`);
  }
}

export function logSettings(log: Logger, event: SettingsEvent): void {
  if (event.type === 'refused') {
    log.error(
      { event: 'settings_refused', problem: event.problem },
      'the changed settings are invalid; the previous settings stay in effect',
    );
    return;
  }
  const { changed, needsRestart } = event;
  const text = needsRestart.length === 0 ? 'new settings applied' : 'some settings take effect after `inference-provider restart`';
  log.info({ event: 'settings', changed, needs_restart: needsRestart }, text);
}

export function logEnrolment(log: Logger, event: EnrolmentEvent): void {
  switch (event.type) {
    case 'offered':
      log.info(
        { event: 'enrolment_offered', url: event.url, expires_at: event.expiresAt },
        'to enrol this Mac, open this one-time address in Safari on this Mac, then install the profile in System Settings',
      );
      return;
    case 'installed':
      log.info({ event: 'enrolment_installed' }, 'the simulated Mac is enrolled');
      return;
    case 'refused':
      log.warn({ event: 'enrolment_refused', reason: event.reason }, 'the coordinator offers no enrolment at the moment');
      return;
    case 'failed':
      log.warn(
        { event: 'enrolment_failed', error: event.error instanceof Error ? event.error.message : '' },
        'the profile was not installed',
      );
      return;
    default:
      event satisfies never;
  }
}

/** Omits the account's name, which is personal. */
export function logLink(log: Logger, { state, reason, remedy }: LinkStatus): void {
  const facts = { event: 'account', state, ...(reason === null ? {} : { reason }) };
  if (state === 'linked') log.info(facts, 'earnings of this machine go to its linked account');
  else if (state === 'none') log.info(facts, remedy ?? 'not signed in');
  else if (state !== 'waiting') log.warn(facts, remedy ?? 'this machine is not linked to an account');
}

export function logJob(log: Logger, { jobId, end, milliseconds }: JobEvent): void {
  const common = { event: 'job', job_id: jobId, ms: Math.round(milliseconds) };
  if (end.kind === 'completed') {
    const { usage, finishReason } = end.summary;
    log.info({ ...common, outcome: 'completed', finish_reason: finishReason, ...usage }, 'job completed');
    return;
  }
  if (end.kind === 'refused') {
    log.info({ ...common, outcome: 'refused', code: end.code }, 'job refused');
    return;
  }
  // Log only the stack of an unexpected error: its message could contain words of a prompt.
  const stack = end.cause instanceof Error ? end.cause.stack?.split('\n').slice(1, 4).join(' ') : undefined;
  log[end.failure.code === 'cancelled' ? 'info' : 'warn'](
    { ...common, outcome: end.failure.code, ...(stack === undefined ? {} : { stack }) },
    'job failed',
  );
}

/** Returns a text for the owner: trust level, whether the coordinator routes jobs here, and remedies. */
export function trustSentence(trust: TrustMessage, simulated = false): string {
  // A missing part is not the cause if the status has another cause, such as a pause.
  const isCause = trust.routable || trust.status === 'untrusted' || trust.status === 'below_min_trust_level';
  const gap = isCause ? trust.parts.find(({ state }) => state !== 'ok') : undefined;
  const advice = (trust.routable ? gap?.remedy : (trust.status_remedy ?? gap?.remedy)) ?? '';
  const gapAdvice = gap?.remedy !== undefined && !advice.includes(gap.remedy) ? ` ${gap.remedy}` : '';
  const level = trust.trust_level === 'none' ? 'no trust' : `trust level ${trust.trust_level}${simulated ? ' (simulated enclave)' : ''}`;
  const routing = `${trust.routable ? 'ready for requests' : `gets NO requests (${trust.status})`}${restrictionText(trust)}`;
  const part = gap === undefined ? '' : `; ${gap.name} is ${gap.state}`;
  // The texts come from another machine and may reach a terminal.
  return cleanLabel(`${level}, ${routing}${part}. ${advice}${gapAdvice}`, 1024, level);
}

function restrictionText({ restraint }: TrustMessage): string {
  if (restraint === undefined) return '';
  if (restraint.state === 'on_probation') return `, one at a time (${restraint.reason})`;
  return ` until ${dateText(restraint.until)} (${restraint.reason})`;
}

/** ISO 8601. A number from the coordinator may exceed the range of dates. */
function dateText(ms: number): string {
  return new Date(Math.min(ms, MAX_DATE_MS)).toISOString();
}

/** ECMA-262, Time Values and Time Range. */
const MAX_DATE_MS = 8.64e15;

/** A checkpoint of the coordinator's transparency log failed verification. */
export function logContradictedLog(log: Logger, reason: string): void {
  log.warn({ event: 'log_contradicted', reason }, "the coordinator's transparency log contradicts itself");
}

/** Not a warning, because the client did not sign the tree that it named. */
export function logOtherLogHead(log: Logger): void {
  log.info({ event: 'log_head_differs' }, 'a client named another tree of the transparency log; its claim is not signed');
}
