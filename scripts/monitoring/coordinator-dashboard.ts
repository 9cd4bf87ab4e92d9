/** Rows and panels of the Grafana dashboard for coordinators. */
import type { Panel, Query, Row } from './grafana.js';

type Options = Omit<Panel, 'kind' | 'title' | 'unit' | 'queries'>;

function timePanel(title: string, unit: string, queries: Readonly<Record<string, string>>, options: Options = {}): Panel {
  return { kind: 'time', title, unit, queries: queriesOf(queries), ...options };
}

function number(title: string, unit: string, expr: string, options: Options = {}): Panel {
  return { kind: 'number', title, unit, queries: [{ legend: title, expr }], ...options };
}

function queriesOf(queries: Readonly<Record<string, string>>): readonly Query[] {
  return Object.entries(queries).map(([legend, expr]) => ({ legend, expr }));
}

/** 50th and 95th percentile of a histogram over all coordinators. */
function percentiles(histogram: string): Readonly<Record<string, string>> {
  const of = (quantile: number) => `histogram_quantile(${quantile}, sum by (le) (rate(${histogram}_bucket[$__rate_interval])))`;
  return { median: of(0.5), '95th percentile': of(0.95) };
}

const OBJECTIVES: Row = {
  title: 'Objectives (docs/slos.md)',
  panels: [
    number('Requests without failure, 1 h', 'percentunit', '1 - inference:request_errors:ratio_rate1h', { redBelow: 0.995 }),
    number('Requests without failure, 30 d', 'percentunit', '1 - inference:request_errors:ratio_rate30d', { redBelow: 0.995 }),
    number('First content within 5 s, 30 d', 'percentunit', '1 - inference:first_token_slow:ratio_rate30d', { redBelow: 0.95 }),
    number('Answers that verify, 30 d', 'percentunit', '1 - inference:answers_unverified:ratio_rate30d', { redBelow: 0.999 }),
    number('Answers settled, 30 d', 'percentunit', '1 - inference:answers_unsettled:ratio_rate30d', { redBelow: 0.9999 }),
    number('A coordinator ready, 30 d', 'percentunit', 'inference:ready:avg30d', { redBelow: 0.999 }),
  ],
};

const TRAFFIC: Row = {
  title: 'Traffic',
  panels: [
    timePanel(
      'Requests by end',
      'reqps',
      { '{{end}}': 'sum by (end) (rate(inference_jobs_total[$__rate_interval]))' },
      { isStacked: true },
    ),
    timePanel(
      'Requests by endpoint',
      'reqps',
      { '{{endpoint}}': 'sum by (endpoint) (rate(inference_jobs_total[$__rate_interval]))' },
      { isStacked: true },
    ),
    timePanel('Share of failed requests', 'percentunit', {
      '5 minutes': 'inference:request_errors:ratio_rate5m',
      '1 hour': 'inference:request_errors:ratio_rate1h',
    }),
    timePanel(
      'Billed tokens by model',
      'short',
      { '{{model}} {{kind}}': 'topk(10, sum by (model, kind) (rate(inference_tokens_total[$__rate_interval])))' },
      { about: 'Tokens per second of the ten busiest models.' },
    ),
    timePanel('Bytes', 'Bps', { '{{direction}}': 'sum by (direction) (rate(inference_bytes_total[$__rate_interval]))' }),
    timePanel('Sealed requests, and clients that disconnected', 'reqps', {
      sealed: 'sum(rate(inference_e2e_jobs_total[$__rate_interval]))',
      'disconnected {{stage}}': 'sum by (stage) (rate(inference_cancels_total[$__rate_interval]))',
    }),
    timePanel('Images', 'short', {
      'billed {{model}}': 'sum by (model) (rate(inference_images_total[$__rate_interval]))',
      'fetched {{outcome}}': 'sum by (outcome) (rate(inference_image_fetches_total[$__rate_interval]))',
    }),
  ],
};

const LATENCY: Row = {
  title: 'Latency',
  panels: [
    timePanel('Time to first content', 's', percentiles('inference_first_token_seconds'), {
      about: 'Streams, from the request; waiting and the machine included.',
    }),
    timePanel('Duration of requests', 's', percentiles('inference_job_seconds')),
    timePanel('Added by the coordinator per write', 's', percentiles('inference_relay_seconds')),
    timePanel('Duration of ledger steps, 95th percentile', 's', {
      '{{step}}': 'histogram_quantile(0.95, sum by (le, step) (rate(inference_ledger_step_seconds_bucket[$__rate_interval])))',
    }),
  ],
};

const QUEUE: Row = {
  title: 'Queue and placement',
  panels: [
    timePanel('Waiting requests', 'short', { text: 'sum(inference_queue_length)', images: 'sum(inference_image_queue_length)' }),
    timePanel('Wait for a slot', 's', percentiles('inference_queue_wait_seconds')),
    timePanel(
      'Placements by outcome',
      'reqps',
      { '{{outcome}}': 'sum by (outcome) (rate(inference_placements_total[$__rate_interval]))' },
      { isStacked: true },
    ),
    timePanel('Failed attempts by reason', 'reqps', {
      '{{reason}}': 'sum by (reason) (rate(inference_failed_attempts_total[$__rate_interval]))',
    }),
    timePanel('Hedged requests', 'reqps', { '{{outcome}}': 'sum by (outcome) (rate(inference_hedges_total[$__rate_interval]))' }),
    timePanel('Request bodies in memory', 'bytes', {
      'accounts {{instance}}': 'inference_request_bytes_held{instance=~"$instance"}',
      'strangers {{instance}}': 'inference_stranger_bytes_held{instance=~"$instance"}',
    }),
    timePanel('Bodies refused for lack of memory', 'short', {
      '{{instance}}': 'increase(inference_request_bodies_overloaded{instance=~"$instance"}[$__rate_interval])',
    }),
    timePanel('Image store', 'percentunit', {
      '{{instance}}': 'sum by (instance) (inference_image_store_bytes) / sum by (instance) (inference_image_store_limit_bytes)',
    }),
  ],
};

const MACHINES: Row = {
  title: 'Machines',
  panels: [
    number('Eligible', 'short', 'inference:providers_routable:sum', { redBelow: 1 }),
    number('Connected', 'short', 'inference:providers:sum'),
    number('Models served', 'short', 'count(inference:model_providers:sum > 0)'),
    number('Slots in use', 'percentunit', 'inference:provider_slots_used:ratio', { redFrom: 0.9 }),
    number('Machines that report many tokens', 'short', 'sum(inference_provider_length_outliers) or vector(0)', { redFrom: 1 }),
    number('Sockets', 'short', 'sum(inference_provider_connections)'),
    timePanel('Machines by status', 'short', { '{{status}}': 'sum by (status) (inference_providers)' }, { isStacked: true }),
    timePanel('Slots', 'short', { '{{state}}': 'sum by (state) (inference_provider_slots)' }),
    timePanel('Machines by model', 'short', { '{{model}}': 'topk(15, inference:model_providers:sum)' }),
    timePanel('Sessions that began and ended', 'short', {
      '{{event}} {{code}}': 'sum by (event, code) (increase(inference_provider_sessions_total[$__rate_interval]))',
    }),
  ],
};

const TRUST: Row = {
  title: 'Trust',
  panels: [
    timePanel('Machines by trust level', 'short', { '{{trust_level}}': 'sum by (trust_level) (inference_providers)' }, { isStacked: true }),
    timePanel('Attestation parts that are not ok', 'short', {
      '{{part}} {{state}}': 'sum by (part, state) (inference_provider_trust_parts{state!="ok"})',
    }),
    timePanel('Quarantines by reputation', 'short', {
      '{{event}}': 'sum by (event) (increase(inference_provider_quarantines_total[$__rate_interval]))',
    }),
    timePanel('Challenges and unexpected messages', 'short', {
      '{{kind}}': 'sum by (kind) (rate(inference_provider_messages[$__rate_interval]))',
    }),
    timePanel('Device management', 'short', {
      'reports {{outcome}}': 'sum by (outcome) (increase(inference_device_reports[$__rate_interval]))',
      failures: 'sum(increase(inference_device_management_failures_total[$__rate_interval]))',
    }),
    timePanel('Transparency log entries', 'short', { '{{state}}': 'max by (state) (inference_log_entries)' }),
    timePanel('Witnesses', 'short', {
      '{{witness}} {{outcome}}': 'sum by (witness, outcome) (increase(inference_witness_requests_total[$__rate_interval]))',
    }),
    timePanel('Days until certificates expire', 'd', {
      '{{certificate}}': '(inference_certificate_expiry_timestamp_seconds - time()) / 86400',
    }),
  ],
};

const MONEY: Row = {
  title: 'Money',
  panels: [
    number('Problems of the ledger', 'short', 'max(inference_ledger_problems)', { redFrom: 1 }),
    number('Running reservations', 'short', 'max(inference_ledger_reservations)'),
    number('Age of the oldest reservation', 's', 'max(inference_ledger_oldest_reservation_seconds)', { redFrom: 3600 }),
    number('Unfinished transfers', 'short', 'max(inference_transfers_unfinished)', { redFrom: 1 }),
    number('Age of the oldest transfer', 's', 'max(inference_transfers_oldest_unfinished_seconds)', { redFrom: 900 }),
    timePanel('Balances in US dollars', 'currencyUSD', { '{{kind}}': 'max by (kind) (inference_ledger_micro_usd) / 1e6' }),
    timePanel('Ledger steps by outcome', 'ops', {
      '{{step}} {{outcome}}': 'sum by (step, outcome) (rate(inference_ledger_steps_total[$__rate_interval]))',
    }),
    timePanel('Payment processor', 'short', {
      '{{outcome}}': 'sum by (outcome) (increase(inference_payment_events_total[$__rate_interval]))',
      'calls without an answer': 'sum(increase(inference_payment_processor_failures_total[$__rate_interval]))',
    }),
    timePanel('Mails', 'short', { '{{kind}} {{outcome}}': 'sum by (kind, outcome) (increase(inference_mails_total[$__rate_interval]))' }),
  ],
};

const LINKS: Row = {
  title: 'Links between coordinators (empty without a cluster)',
  panels: [
    timePanel('Links up', 'short', { '{{instance}} to {{peer}}': 'inference_cluster_link_up' }),
    timePanel('Round trip', 's', { '{{instance}} to {{peer}}': 'inference_cluster_link_round_trip_seconds' }),
    timePanel('Age of heartbeats', 's', { '{{instance}} of {{peer}}': 'inference_cluster_heartbeat_age_seconds' }),
    timePanel('Placements at other coordinators', 'reqps', {
      '{{outcome}}': 'sum by (outcome) (rate(inference_cluster_placements_total[$__rate_interval]))',
    }),
    timePanel('Streams, and losses of links', 'short', {
      'streams {{instance}} to {{peer}}': 'inference_cluster_link_streams',
      'losses {{instance}} to {{peer}}': 'increase(inference_cluster_link_losses[$__rate_interval])',
    }),
    timePanel('Bytes retained for peers', 'bytes', {
      '{{instance}} to {{peer}}': 'inference_cluster_link_retained_bytes',
      'NATS {{instance}}': 'inference_cluster_nats_buffered_bytes',
    }),
    timePanel('Envelopes', 'short', { '{{outcome}}': 'sum by (outcome) (rate(inference_cluster_link_envelopes[$__rate_interval]))' }),
    timePanel('Peers, machines and models as seen', 'short', {
      'peers {{instance}} {{state}}': 'inference_cluster_peers',
      'machines of {{peer}}': 'max by (peer) (inference_cluster_peer_providers)',
      'models of {{peer}}': 'max by (peer) (inference_cluster_peer_models)',
    }),
    timePanel('NATS, and clock differences', 's', {
      'connected {{instance}}': 'inference_cluster_nats_connected',
      'clock {{instance}} {{peer}}': 'abs(inference_cluster_clock_difference_seconds)',
      'database clock {{instance}}': 'abs(inference_database_clock_difference_seconds)',
    }),
  ],
};

const PROCESS: Row = {
  title: 'Process',
  panels: [
    timePanel('Ready', 'short', { '{{instance}}': 'inference_ready{instance=~"$instance"}' }),
    timePanel('Processor', 'percentunit', {
      '{{instance}}': 'rate(process_cpu_seconds_total{job="inference-coordinator", instance=~"$instance"}[$__rate_interval])',
    }),
    timePanel('Memory', 'bytes', {
      '{{instance}}': 'process_resident_memory_bytes{job="inference-coordinator", instance=~"$instance"}',
      'heap {{instance}}': 'nodejs_heap_size_used_bytes{job="inference-coordinator", instance=~"$instance"}',
    }),
    timePanel('Event loop lag, 99th percentile', 's', {
      '{{instance}}': 'nodejs_eventloop_lag_p99_seconds{job="inference-coordinator", instance=~"$instance"}',
    }),
    timePanel('Garbage collection', 'percentunit', {
      '{{instance}}':
        'sum by (instance) (rate(nodejs_gc_duration_seconds_sum{job="inference-coordinator", instance=~"$instance"}[$__rate_interval]))',
    }),
    timePanel('Answer of the database', 's', { '{{instance}}': 'inference_database_answer_seconds{instance=~"$instance"}' }),
    timePanel('Rows that wait for the database', 'percentunit', {
      '{{queue}}': 'max by (queue) (inference_write_behind_rows / inference_write_behind_max_rows)',
    }),
    timePanel('Free space of DATA_DIR', 'bytes', { '{{instance}}': 'inference_data_dir_bytes{state="free", instance=~"$instance"}' }),
    timePanel('Password checks', 'short', { '{{state}} {{instance}}': 'inference_password_hashes{instance=~"$instance"}' }),
  ],
};

export const COORDINATOR_DASHBOARD = {
  uid: 'inference-coordinator',
  title: 'Inference network',
  rows: [OBJECTIVES, TRAFFIC, LATENCY, QUEUE, MACHINES, TRUST, MONEY, LINKS, PROCESS],
} as const;
