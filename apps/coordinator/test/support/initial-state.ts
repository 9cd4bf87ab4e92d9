/** Resets a PostgreSQL database to its state right after the migrations, in a tenth of the migrations' time. */
import type pg from 'pg';

export interface InitialState {
  /** Hash of the schema: tables, columns, constraints, triggers and functions. */
  readonly schemaDigest: string;
  /** Rows of each table as JSON. Newest table first, so that deletes in this order satisfy foreign keys. */
  readonly tables: readonly { readonly name: string; readonly rows: string | null }[];
  readonly sequences: readonly string[];
}

const SCHEMA_DIGEST = `
  select md5(string_agg(part, ',' order by part)) as digest from (
    select format('table %s %s %s', oid, relname, relkind) as part from pg_class where relnamespace = 'public'::regnamespace
    union all
    select format('column %s %s %s %s %s %s', attrelid, attnum, attname, atttypid, attnotnull, atthasdef)
      from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = 'public'::regnamespace and relkind = 'r' and attnum > 0
    union all
    select format('constraint %s %s', oid, conname) from pg_constraint where connamespace = 'public'::regnamespace
    union all
    select format('trigger %s %s %s', pg_trigger.oid, tgname, tgenabled)
      from pg_trigger join pg_class on pg_class.oid = tgrelid where relnamespace = 'public'::regnamespace
    union all
    select format('function %s', oid) from pg_proc where pronamespace = 'public'::regnamespace
  ) as parts`;

export async function readInitialState(client: pg.Client): Promise<InitialState> {
  const names = await relations(client, 'r');
  const tables: { name: string; rows: string | null }[] = [];
  for (const name of names) {
    const { rows } = await client.query<{ rows: string | null }>(`select json_agg(each)::text as rows from "${name}" as each`);
    tables.push({ name, rows: rows[0]?.rows ?? null });
  }
  return { schemaDigest: await schemaDigest(client), tables, sequences: await relations(client, 'S') };
}

/** False if the schema changed or refers to newer tables; the database must then be emptied instead. */
export async function restoreInitialState(client: pg.Client, { schemaDigest: digest, tables, sequences }: InitialState): Promise<boolean> {
  if ((await schemaDigest(client)) !== digest) return false;
  const filled = tables.filter(({ rows }) => rows !== null);
  const statements = [
    'begin',
    // Waits for running statements of connections that are being closed.
    `lock table ${tables.map(({ name }) => `"${name}"`).join(', ')} in access exclusive mode`,
    ...tables.map(({ name }) => `delete from "${name}"`),
    ...filled.toReversed().map(({ name, rows }) => {
      const text = client.escapeLiteral(rows ?? '');
      return `insert into "${name}" select * from json_populate_recordset(null::"${name}", ${text})`;
    }),
    ...sequences.map((name) => `alter sequence "${name}" restart`),
    'commit',
  ];
  try {
    await client.query(statements.join(';\n'));
    return true;
  } catch {
    await client.query('rollback');
    return false;
  }
}

async function relations(client: pg.Client, kind: 'r' | 'S'): Promise<string[]> {
  const { rows } = await client.query<{ relname: string }>(
    `select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = $1 order by oid desc`,
    [kind],
  );
  return rows.map(({ relname }) => relname);
}

async function schemaDigest(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ digest: string }>(SCHEMA_DIGEST);
  return rows[0]?.digest ?? '';
}
