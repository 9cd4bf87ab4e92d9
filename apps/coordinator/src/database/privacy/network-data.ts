/** Data inventory (`StoredTable`): tables of the network itself, such as the audit log, keysets, transparency log and incidents. */
import { sql } from 'kysely';
import { ofAccount, type StoredTable } from './stored-table.js';

const NO_ACCOUNT = 'about no account';
const NOT_AFFECTED = 'not affected';

/** Inventory entry of a table without personal data. */
const technical = (about: string, columns: string, retention: string): StoredTable => ({
  about,
  columns: { technical: columns },
  retention,
  exported: NO_ACCOUNT,
  afterDeletion: NOT_AFFECTED,
});

export const NETWORK_DATA = {
  operator_actions: {
    about: 'Audit log: every change by an operator with time, operator’s id, address, subject, request body and result.',
    columns: { identity: 'details', activity: 'id at action subject outcome', others: 'operator' },
    retention: '`RETENTION_AUDIT_LOG_DAYS`',
    exported: {
      rows: (id) => sql<boolean>`(subject = ${id} or operator = ${`account:${id}`})`,
      key: ['id'],
      // In other rows, the account is the operator, and subject and details concern somebody else.
      restricted: { rows: ofAccount('subject'), columns: ['subject', 'details'] },
    },
    afterDeletion:
      'stays with random ids; texts in request bodies about the account, its machines and withdrawals (reasons, references) are erased',
  },
  attempt_counts: {
    about: 'Guesses at passwords and codes, and sent mails, in a time window: counted under keyed hashes of address and e-mail address.',
    columns: { activity: 'name count expires_at' },
    retention: '15 minutes to an hour, 30 days for browsers that signed in; only in a cluster, otherwise in memory',
    exported: 'cannot be traced back to an account',
    afterDeletion: 'removed at the end of its retention',
  },
  sealed_nonces: {
    about: 'Hashes that stop a sealed request from being sent twice.',
    columns: { activity: 'digest expires_at job_id' },
    retention: 'minutes',
    exported: 'cannot be traced back to an account',
    afterDeletion: 'removed at the end of its retention',
  },
  e2e_keysets: {
    about: 'Published sealing keys of machines, under the machines’ public ids.',
    columns: { activity: 'epoch body issued_at' },
    retention: 'the newest 2',
    exported: 'public, about machines: `GET /v1/e2e/keyset`',
    afterDeletion: 'removed at the end of its retention',
  },
  e2e_keyset_claims: {
    about: 'The same before publication.',
    columns: { activity: 'epoch body issued_at' },
    retention: 'the newest 16',
    exported: 'public, about machines',
    afterDeletion: 'removed at the end of its retention',
  },
  log_entries: {
    about: 'Transparency log: hashes of keysets and releases, public ids and key hashes of machines, quarantines.',
    columns: { activity: 'leaf_index leaf_hash kind entry created_at' },
    retention: 'for good: the log proves that nothing was removed',
    exported: 'public, about machines',
    afterDeletion: 'stays: see [Transparency log](#transparency-log)',
  },
  log_heads: technical(
    'Size, root hash and signatures of the transparency log.',
    'name origin size published_size published_root cosignatures',
    'for good',
  ),
  log_nodes: technical('Hashes of the transparency log’s tree.', 'level node_index hash', 'for good'),
  secrets: {
    about: 'Keys of the network, such as those for pseudonyms and sessions.',
    columns: { secret: 'value', technical: 'name' },
    retention: 'unlimited',
    exported: NO_ACCOUNT,
    afterDeletion: NOT_AFFECTED,
  },
  incidents: technical(
    'Incidents and maintenance on the public status page. Operators should write no names.',
    'id kind title impact components models created_at starts_at ends_at resolved_at changed_at',
    'the newest 1,000',
  ),
  incident_updates: technical('Updates of incidents.', 'id incident_id at status message', 'with the incident'),
  model_availability: technical('How often each model was available per day.', 'model day checks missed', '90 days'),
  component_availability: technical(
    'How long each part of the network ran per day.',
    'component day minutes first_minute last_minute',
    '400 days',
  ),
  catalogue_models: technical(
    'Models that operators describe.',
    'id display_name quantization model_type min_memory_bytes created_at updated_at',
    'until removed',
  ),
  catalogue_files: technical('Hashes of model files.', 'model_id sha256', 'until removed'),
  periodic_runs: technical('When periodic work last ran.', 'name ran_at', 'unlimited'),
  webhook_digests: technical('Hashes of handled reports, so that none counts twice.', 'digest expires_at', 'until they expire'),
  rollouts: technical(
    'How far each version of the agent has spread, with the operator’s id of the last change.',
    'version state stage started_at stage_started_at evidence_since urgent_since ended_at reason changed_by findings checked_at',
    'unlimited',
  ),
  rollout_machines: {
    about: 'Machines that are compared while a version spreads: public id, chip, models, counts of requests, speed, hash of the owner.',
    columns: {
      activity:
        'version provider_id part chip_family models slots since seen_at on_version_at failed_at blocked_at restricted_at trust_before trust attempts failures speed_model speed_before speed_ratio owner is_volunteer',
    },
    retention: 'with the newest versions',
    exported: 'about machines; their state is in `machines_last_seen`',
    afterDeletion: 'stays under the machine’s id until newer versions replace it',
  },
  rollout_fleets: technical(
    'Capacity that each coordinator sees, with hashes of the largest owners.',
    'coordinator seen_at fleet',
    'while the coordinator runs',
  ),
  rollout_policies: technical('The operators’ policy for new versions of the agent.', 'name policy changed_at changed_by', 'unlimited'),
  health_history: technical(
    'Figures of coordinators over time: counts and durations.',
    'coordinator slot_seconds slot_at figures',
    '2 hours by minute, 26 hours by ten minutes, 8 days by hour',
  ),
  schema_migrations: technical('Schema changes that were applied.', 'name timestamp', 'unlimited'),
  schema_compatibility: technical('Programs that run after each schema change.', 'name kind oldest_program', 'unlimited'),
  kysely_migration: technical('Schema changes as the first release recorded them.', 'name timestamp', 'unlimited'),
  kysely_migration_lock: technical('Lock of schema changes.', 'id is_locked', 'unlimited'),
} as const satisfies Readonly<Record<string, StoredTable>>;
