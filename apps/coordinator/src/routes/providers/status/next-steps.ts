/** `nextSteps` recommends actions to a provider's owner: first against what blocks all jobs, then some jobs, then improvements. */
import { actionableParts, type NextStep, type ProviderStatusAnswer } from '@inference/protocol';
import type { UnavailableReason } from '@inference/scheduler';
import { formatDuration } from './decision-text.js';

export type StatusFacts = Omit<ProviderStatusAnswer, 'next_steps'>;

/** Advice for temporary values of `gate`, the reason for unavailability of a provider. Other reasons have their own step or need none. */
const TEMPORARY_CAUSES: Partial<Record<UnavailableReason, string>> = {
  too_hot: 'This Mac is too hot and gets no requests until it has cooled down. Improve its cooling, or run fewer other programs.',
  no_memory: 'This Mac is out of memory and gets no requests until some is free. Close programs, or serve a smaller model.',
};
const RESTRICTION_TEXTS = {
  cooling_down: 'Requests failed here, so this Mac gets none during a backoff; then one request tests it.',
  on_probation: 'Requests failed here. One request at a time tests whether this Mac works again.',
} as const;
/** Minimum consecutive refusals for a step. Fewer can be a short peak. */
const MIN_REFUSALS = 3;
/** Maximum age of the placement decisions that steps are based on. */
const RECENT_MS = 30 * 60_000;
/** Period for {@link isServing}. Same as the period of the demand in a status. */
const SERVING_MS = 5 * 60_000;
const MIN_MEASURED_JOBS = 5;
/** Reasons of decisions that chose the provider for its speed or cache, not for a measurement, a probe or a client's request. */
const SPEED_REASONS: ReadonlySet<string> = new Set(['cheapest', 'near_tie', 'warm']);

export function nextSteps(facts: StatusFacts): NextStep[] {
  const steps = [
    ...blockingSteps(facts),
    ...temporarySteps(facts),
    ...accountSteps(facts),
    ...demandSteps(facts),
    ...lostRequestSteps(facts),
    ...improvementSteps(facts),
  ];
  return steps.length > 0 ? steps : [{ code: 'nothing', text: 'Nothing: this Mac gets its share of the requests.' }];
}

function blockingSteps({ status, status_remedy, availability, trust_parts, trust_level, models }: StatusFacts): NextStep[] {
  const steps: NextStep[] = [];
  if (status === 'away')
    steps.push({
      code: availability?.reason ?? 'away',
      text: availability?.text ?? status_remedy ?? 'This machine is not accepting requests.',
    });
  else if (status !== 'online') steps.push({ code: status, text: status_remedy ?? 'This machine gets no requests.' });
  if (trust_level === 'none' || status === 'untrusted' || status === 'below_min_trust_level') {
    for (const { reason, remedy } of actionableParts(trust_parts)) {
      // The remedy of the first part is already in the text of the status.
      const isNew = remedy !== undefined && !steps.some(({ text }) => text.includes(remedy));
      if (reason !== undefined && isNew) steps.push({ code: reason, text: remedy });
    }
  }
  if (models.length === 0) {
    steps.push({ code: 'no_model', text: 'No model is offered at the moment. Check the log: the model is loading, or failed to load.' });
  }
  return steps;
}

function temporarySteps({ gate }: StatusFacts): NextStep[] {
  const text = gate === null ? undefined : TEMPORARY_CAUSES[gate as UnavailableReason];
  return gate === null || text === undefined ? [] : [{ code: gate, text }];
}

function accountSteps({ earnings }: StatusFacts): NextStep[] {
  if (earnings?.of !== 'machine') return [];
  const text = 'This Mac is linked to no account. Its earnings are held for the account that links it: run "inference-provider login".';
  return [{ code: 'not_linked', text }];
}

function demandSteps({ models }: StatusFacts): NextStep[] {
  return models
    .filter(({ demand: { requests_last_5_minutes: asked, waiting_requests: waiting } }) => asked === 0 && waiting === 0)
    .map(({ id }) => ({
      code: 'no_demand',
      text: 'There are no requests for this model at the moment. To find models in demand, run "inference-provider models recommend".',
      model: id,
    }));
}

function lostRequestSteps(facts: StatusFacts): NextStep[] {
  const { decisions, models, trust_parts, host, reputation, server_time } = facts;
  const steps: NextStep[] = [];
  const since = Date.parse(server_time) - RECENT_MS;
  const recent = decisions.filter(({ last_at }) => Date.parse(last_at) >= since);
  if (reputation.state === 'cooling_down' || reputation.state === 'on_probation') {
    steps.push({ code: reputation.state, text: `${RESTRICTION_TEXTS[reputation.state]} Check the log.` });
  } else if (reputation.recent_failures > 0) {
    steps.push({ code: 'failing', text: 'Jobs failed here recently, so other providers are preferred for a while. Check the log.' });
  }
  const refused = reputation.refused_in_a_row ?? 0;
  if (refused >= MIN_REFUSALS) {
    const text = `This Mac has refused ${refused} requests in a row as full, so its backoff grows each time. Offer fewer slots, or free memory.`;
    steps.push({ code: 'refuses', text });
  }
  if (recent.some(({ reason }) => reason === 'below_trust_floor')) {
    const gap = trust_parts.find(({ state }) => state !== 'ok');
    const remedy = gap?.remedy === undefined ? '' : ` ${gap.remedy}`;
    // 512 is the maximum length in `ProviderStatusSchema`.
    steps.push({ code: 'below_trust_floor', text: `Some requests require trust level hardware.${remedy}`.slice(0, 512) });
  }
  const strain = strainText(host);
  if (strain !== null) steps.push({ code: 'strained', text: strain });
  for (const { id, measured_jobs } of models) {
    // A smaller model is recommended only if the speed is measured and was no recent reason to choose this provider.
    if (measured_jobs < MIN_MEASURED_JOBS || isServing(id, facts)) continue;
    // Decisions are sorted newest first. Only the newest reflects the current speed.
    const slower = recent.find(({ model }) => model === id);
    if (slower?.reason !== 'slower') continue;
    const text = `Your Mac is slower by ${formatDuration(slower.slower_by_ms ?? 0)} than the best provider of this model. A smaller model would be a better fit.`;
    steps.push({ code: 'slower', text, model: id });
  }
  return steps;
}

/** Whether the provider was chosen for the model in the last {@link SERVING_MS}, for its speed or cache. */
function isServing(id: string, { decisions, server_time }: StatusFacts): boolean {
  const since = Date.parse(server_time) - SERVING_MS;
  return decisions.some(
    ({ model, outcome, reason, last_at }) =>
      model === id && outcome === 'chosen' && SPEED_REASONS.has(reason) && Date.parse(last_at) >= since,
  );
}

function strainText({ thermal, memory_pressure, power }: StatusFacts['host']): string | null {
  if (power === 'battery') return 'This Mac runs on battery, so Macs on mains power are preferred. Connect it to power.';
  if (thermal === 'serious') return 'This Mac is hot, so cooler Macs are preferred. Improve its cooling, or run fewer other programs.';
  if (memory_pressure === 'warning')
    return 'This Mac is short of memory, so others are preferred. Close programs, or serve a smaller model.';
  return null;
}

function improvementSteps({ status, trust_level, trust_parts, models }: StatusFacts): NextStep[] {
  const steps: NextStep[] = [];
  const gap = trust_parts.find(({ state, remedy }) => state !== 'ok' && remedy !== undefined);
  const isReported = status === 'below_min_trust_level';
  if (!isReported && trust_level === 'self_signed' && gap?.reason !== undefined && gap.remedy !== undefined) {
    steps.push({ code: gap.reason, text: `For trust level hardware: ${gap.remedy}`.slice(0, 512) });
  }
  for (const { id, measured_jobs } of models) {
    if (measured_jobs < MIN_MEASURED_JOBS) {
      steps.push({
        code: 'not_measured',
        text: 'The speed of this Mac with this model is not measured yet. The measurement takes a few requests.',
        model: id,
      });
    }
  }
  return steps;
}
