/**
 * Data inventory (`StoredTable`): tables of machines (providers), such as links to accounts, state and device management.
 */
import { sql } from 'kysely';
import { ofAccount, ofEnrolments, ofMachines, type StoredTable } from './stored-table.js';

const AFTER_UNLINKING = 'unlinked from the account, and removed `RETENTION_UNLINKED_MACHINES_DAYS` after the machine’s last report';
const MACHINE_RETENTION =
  '`RETENTION_MACHINES_DAYS` after the machine’s last report, `RETENTION_UNLINKED_MACHINES_DAYS` without an account';

export const MACHINE_DATA = {
  provider_owners: {
    about: 'Which account earns for a machine. The machine’s id is derived from its key, and is public.',
    columns: { activity: 'provider_id account_id linked_at', others: 'first_owner' },
    retention: 'unlimited: bookkeeping',
    exported: { rows: ofAccount('account_id'), key: ['provider_id'] },
    afterDeletion: 'unlinked. The random id of the first owner stays: older ledger entries refer to it',
  },
  unclaimed_accounts: {
    about: 'Ledger accounts for the earnings of machines while they have no owner.',
    columns: { activity: 'account provider_id since claimed_by' },
    retention: 'unlimited: bookkeeping',
    exported: { rows: ofAccount('claimed_by'), key: ['account'] },
    afterDeletion: 'stays under random ids: bookkeeping',
  },
  machine_names: {
    about: 'Names that owners give their machines.',
    columns: { identity: 'name', activity: 'provider_id account_id' },
    retention: 'while linked',
    exported: { rows: ofAccount('account_id'), key: ['provider_id'] },
    afterDeletion: 'removed',
    erasures: [{ rows: ofAccount('account_id') }],
  },
  machine_tokens: {
    about: 'Credentials of linked machines, as hashes, with the computer name that the machine reported.',
    columns: { identity: 'machine_name', secret: 'hash', activity: 'account_id provider_id created_at bound_at revoked_at' },
    retention: 'while the account exists, revoked ones too',
    exported: { rows: ofAccount('account_id'), key: ['hash'] },
    afterDeletion: 'removed',
    erasures: [{ rows: ofAccount('account_id') }],
  },
  owner_commands: {
    about: 'Commands that were sent to machines from the console: who, when, what, and the outcome.',
    columns: { activity: 'id account_id provider_id actor_id at action outcome refusal' },
    retention: 'the newest 1,000 per account',
    exported: { rows: (id) => sql<boolean>`(account_id = ${id} or actor_id = ${id})`, key: ['id'] },
    afterDeletion:
      'removed with the account that owns the machine. Commands of a deleted organisation member stay, with the member’s random id',
    erasures: [{ rows: ofAccount('account_id') }],
  },
  machines_last_seen: {
    about: 'Last state of linked machines for their owners: serial number, chip, program version, models.',
    columns: { identity: 'facts', activity: 'provider_id seen_at' },
    retention: MACHINE_RETENTION,
    exported: { rows: ofMachines('provider_id'), key: ['provider_id'] },
    afterDeletion: 'removed',
    erasures: [{ rows: ofMachines('provider_id') }],
  },
  device_codes: {
    about: 'Codes with which a machine asks to be linked, with its name, chip and network address, which the owner sees.',
    columns: {
      identity: 'machine_name chip_name address',
      secret: 'hash user_code token_hash',
      activity: 'requested_at expires_at interval_ms polled_at account_id approved_at denied_at',
    },
    retention: '10 minutes valid, removed within 90 minutes',
    exported: { rows: ofAccount('account_id'), key: ['hash'] },
    afterDeletion: 'removed',
    erasures: [{ rows: ofAccount('account_id') }],
  },
  machine_codes: {
    about: 'Unused since machines are linked by `device_codes`.',
    columns: { secret: 'hash', activity: 'account_id created_at expires_at used_at' },
    retention: 'nothing is written any more',
    exported: { rows: ofAccount('account_id'), key: ['hash'] },
    afterDeletion: 'removed',
    erasures: [{ rows: ofAccount('account_id') }],
  },
  provider_reputations: {
    about: 'Failures of machines, with cooldowns and quarantines, so that broken or dishonest machines get no requests.',
    columns: {
      activity:
        'provider_id weight late at restraint_kind restraint_reason restraint_detail restraint_since restraint_until cooldowns quarantines ' +
        'cooldowns_at quarantines_at written_at',
    },
    retention: 'until the failures expire, at most 32 days after the newest',
    exported: { rows: ofMachines('provider_id'), key: ['provider_id'] },
    afterDeletion: 'stays with the machine’s id',
  },
  provider_holds: {
    about: 'Quarantines by operators, with the reason that the owner sees.',
    columns: { identity: 'reason', activity: 'provider_id since', others: 'held_by' },
    retention: 'until released',
    exported: { rows: ofMachines('provider_id'), key: ['provider_id'] },
    afterDeletion: 'the quarantine stays with the machine’s id; the reason is erased',
    erasures: [{ rows: ofMachines('provider_id'), set: { reason: '[erased]' } }],
  },
  device_enrolments: {
    about: 'Macs in device management: serial number, device id and key, which prove that a machine is a real Mac.',
    columns: {
      identity: 'serial_number device_id',
      secret: 'download_hash token_hash',
      activity: 'id provider_id se_key_sha256 se_public_key state created_at expires_at bound_at ended_at end_reason',
    },
    retention: MACHINE_RETENTION,
    exported: { rows: ofMachines('provider_id'), key: ['id'] },
    afterDeletion: AFTER_UNLINKING,
  },
  device_commands: {
    about: 'Device-management commands to enrolled Macs, and whether they were answered.',
    columns: { activity: 'uuid enrolment_id kind sent_at expires_at ended_at outcome' },
    retention: `the newest 16 of each kind; ${MACHINE_RETENTION}`,
    exported: { rows: ofEnrolments('enrolment_id', 'id'), key: ['uuid'] },
    afterDeletion: AFTER_UNLINKING,
  },
  device_nonces: {
    about: 'Nonces that prove that a Mac’s answer is recent, one per machine and week.',
    columns: { activity: 'se_key_sha256 epoch created_at', secret: 'random' },
    retention: '10 weeks',
    exported: { rows: ofEnrolments('se_key_sha256', 'se_key_sha256'), key: ['se_key_sha256', 'epoch'] },
    afterDeletion: 'removed at the end of its retention',
  },
  device_evidence: {
    about: 'Newest answers of enrolled Macs: certificates of Apple with serial number and device id, and security settings.',
    columns: { identity: 'payload', activity: 'se_key_sha256 kind enrolment_id received_at' },
    retention: MACHINE_RETENTION,
    exported: { rows: ofEnrolments('enrolment_id', 'id'), key: ['se_key_sha256', 'kind'] },
    afterDeletion: AFTER_UNLINKING,
  },
} as const satisfies Readonly<Record<string, StoredTable>>;
