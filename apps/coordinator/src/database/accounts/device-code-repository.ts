/**
 * `DeviceCodeRepository`: codes of the device authorization grant (RFC 8628), which links a Mac to its owner's account.
 *
 * The agent (the program on the Mac) shows a user code, and polls with its device code. The owner approves the user code in the console.
 * Then a poll returns a machine token, once. Of several concurrent decisions or polls, only the first takes effect.
 */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { sql } from 'kysely';
import { addMachineToken, hashMachineToken, newMachineToken, revokeUnboundToken } from '../providers/machine-token-repository.js';
import type { Database, Tables } from '../tables.js';

/** Time in which the owner can approve a code. */
export const DEVICE_CODE_LIFE_MS = 10 * 60_000;
const POLL_INTERVAL_MS = 5000;
/** RFC 8628 section 3.5: each `slow_down` lengthens the interval by five seconds, for all later polls. */
const SLOW_DOWN_MS = 5000;
/** Tolerance of the polling interval, because the network delay of polls varies. */
const POLL_TOLERANCE_MS = 500;
/** A stored poll that lies further in the future is ignored: the clock was set back. Clocks of coordinators should differ by less. */
const MAX_CLOCK_LEAD_MS = 60_000;
/** Time for which an expired code is stored, so that polls report it as expired and not as unknown. */
const RETENTION_MS = 10 * 60_000;

/** RFC 8628 section 6.1: without vowels, so that codes form no words, and without characters that look alike. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const USER_CODE_LETTERS = 8;

export interface DeviceRequest {
  readonly machineName: string;
  readonly chipName: string | null;
  readonly address: string | null;
}

interface NewDeviceCode {
  readonly deviceCode: string;
  /** `WDJB-MJHT` */
  readonly userCode: string;
}

type DeviceCodeState = 'waiting' | 'approved' | 'denied' | 'expired';

export interface DeviceCode extends DeviceRequest {
  readonly userCode: string;
  readonly requestedAt: number;
  readonly expiresAt: number;
  readonly state: DeviceCodeState;
}

export type PollOutcome =
  | { readonly kind: 'pending' | 'slow_down' | 'denied' | 'expired' | 'unknown' }
  | { readonly kind: 'granted'; readonly token: string };

export class DeviceCodeRepository {
  readonly #database: Database;
  readonly #now: () => number;
  /** Minimum interval of an agent's polls. */
  readonly intervalMs: number;

  constructor(options: { database: Database; now: () => number; intervalMs?: number | undefined }) {
    this.#database = options.database;
    this.#now = options.now;
    this.intervalMs = options.intervalMs ?? POLL_INTERVAL_MS;
  }

  async create(request: DeviceRequest): Promise<NewDeviceCode> {
    const now = this.#now();
    await this.#database
      .deleteFrom('device_codes')
      .where('expires_at', '<', now - RETENTION_MS)
      .execute();
    const deviceCode = randomBytes(32).toString('base64url');
    const userCode = await this.#insert(hashOf(deviceCode), request, now);
    return { deviceCode, userCode: displayForm(userCode) };
  }

  /** Finds a code for the account that may decide on it. Null: the code is unknown, or another account has decided. */
  async find(userCode: string, accountId: string): Promise<DeviceCode | null> {
    const row = await this.#findRow(userCode);
    return row === null || (row.account_id !== null && row.account_id !== accountId) ? null : this.#view(row);
  }

  /** Approves or denies a waiting code, and returns its state. Codes in other states stay unchanged. Null as in {@link find}. */
  async decide(userCode: string, accountId: string, decision: 'approved' | 'denied'): Promise<DeviceCode | null> {
    const now = this.#now();
    await this.#database
      .updateTable('device_codes')
      .set({ account_id: accountId, ...(decision === 'approved' ? { approved_at: now } : { denied_at: now }) })
      .where('user_code', '=', normaliseUserCode(userCode) ?? '')
      .where('account_id', 'is', null)
      .where('expires_at', '>', now)
      .execute();
    return this.find(userCode, accountId);
  }

  async poll(deviceCode: string): Promise<PollOutcome> {
    const hash = hashOf(deviceCode);
    const row = await this.#database.selectFrom('device_codes').selectAll().where('hash', '=', hash).executeTakeFirst();
    if (row === undefined) return { kind: 'unknown' };
    if (row.token_hash !== null) {
      // The token was already issued. Either the response with it was lost, or somebody else knows the code.
      await revokeUnboundToken(this.#database, row.token_hash, this.#now());
      return { kind: 'unknown' };
    }
    if (row.denied_at !== null) return { kind: 'denied' };
    const now = this.#now();
    if (row.expires_at <= now) return { kind: 'expired' };
    if (!(await this.#recordPoll(hash, now))) return { kind: 'slow_down' };
    if (row.approved_at === null) return { kind: 'pending' };
    return this.#grant(row);
  }

  async #insert(hash: string, request: DeviceRequest, now: number): Promise<string> {
    for (;;) {
      const userCode = newUserCode();
      const { numInsertedOrUpdatedRows } = await this.#database
        .insertInto('device_codes')
        .values({
          hash,
          user_code: userCode,
          machine_name: request.machineName,
          chip_name: request.chipName,
          address: request.address,
          requested_at: now,
          expires_at: now + DEVICE_CODE_LIFE_MS,
          interval_ms: this.intervalMs,
          polled_at: null,
          account_id: null,
          approved_at: null,
          denied_at: null,
          token_hash: null,
        })
        .onConflict((conflict) => conflict.column('user_code').doNothing())
        .executeTakeFirstOrThrow();
      if (numInsertedOrUpdatedRows === 1n) return userCode;
    }
  }

  /** Records a poll. False: the poll came too early, so the interval is lengthened. */
  async #recordPoll(hash: string, now: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#database
      .updateTable('device_codes')
      .set({ polled_at: now })
      .where('hash', '=', hash)
      .where((where) =>
        where.or([
          where('polled_at', 'is', null),
          where('polled_at', '>', now + MAX_CLOCK_LEAD_MS),
          where(sql<number>`polled_at + interval_ms`, '<=', now + POLL_TOLERANCE_MS),
        ]),
      )
      .executeTakeFirst();
    if (numUpdatedRows === 1n) return true;
    await this.#database
      .updateTable('device_codes')
      .set((set) => ({ polled_at: now, interval_ms: set('interval_ms', '+', SLOW_DOWN_MS) }))
      .where('hash', '=', hash)
      .execute();
    return false;
  }

  async #grant(row: Tables['device_codes']): Promise<PollOutcome> {
    const token = newMachineToken();
    const tokenHash = hashMachineToken(token);
    const accountId = row.account_id ?? '';
    return this.#database.transaction().execute(async (transaction) => {
      const owner = await transaction.selectFrom('accounts').selectAll().where('id', '=', accountId).executeTakeFirst();
      const isDenied = owner === undefined || owner.deleted_at !== null || owner.suspended_at !== null;
      const { numUpdatedRows } = await transaction
        .updateTable('device_codes')
        // The denial is stored, because `access_denied` is final (RFC 8628 section 3.5): later polls get the same answer.
        .set(isDenied ? { denied_at: this.#now() } : { token_hash: tokenHash })
        .where('hash', '=', row.hash)
        .where('token_hash', 'is', null)
        .where('denied_at', 'is', null)
        .executeTakeFirst();
      if (isDenied) return { kind: 'denied' };
      if (numUpdatedRows !== 1n) return { kind: 'unknown' };
      await addMachineToken(transaction, { hash: tokenHash, accountId, machineName: row.machine_name, now: this.#now() });
      return { kind: 'granted', token };
    });
  }

  async #findRow(userCode: string): Promise<Tables['device_codes'] | null> {
    const code = normaliseUserCode(userCode);
    if (code === null) return null;
    const row = await this.#database.selectFrom('device_codes').selectAll().where('user_code', '=', code).executeTakeFirst();
    return row ?? null;
  }

  #view(row: Tables['device_codes']): DeviceCode {
    return {
      userCode: displayForm(row.user_code),
      machineName: row.machine_name,
      chipName: row.chip_name,
      address: row.address,
      requestedAt: row.requested_at,
      expiresAt: row.expires_at,
      state: stateOf(row, this.#now()),
    };
  }
}

/** Stored form of a typed user code: upper case, without spaces and dash. Null for malformed input. */
function normaliseUserCode(text: string): string | null {
  if (text.length > 64) return null;
  const letters = text.toUpperCase().replace(/[\s-]/g, '');
  return USER_CODE.test(letters) ? letters : null;
}

const USER_CODE = new RegExp(`^[${LETTERS}]{${USER_CODE_LETTERS}}$`);

function newUserCode(): string {
  return Array.from({ length: USER_CODE_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}

function displayForm(userCode: string): string {
  return `${userCode.slice(0, 4)}-${userCode.slice(4)}`;
}

function stateOf(row: Tables['device_codes'], now: number): DeviceCodeState {
  // A code that its owner approved is denied if the account cannot link machines when the agent polls.
  if (row.denied_at !== null) return 'denied';
  if (row.approved_at !== null) return 'approved';
  return row.expires_at <= now ? 'expired' : 'waiting';
}

function hashOf(code: string): string {
  return createHash('sha256').update(code).digest('hex');
}
