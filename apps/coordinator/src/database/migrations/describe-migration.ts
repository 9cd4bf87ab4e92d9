/** What a migration means for coordinators of the previous version that still run. */

export interface MigrationDescription {
  /** `expand` only adds; `contract` removes or rewrites what the previous version uses, so none may run meanwhile. */
  readonly kind: 'expand' | 'contract';
  /** Effect on coordinators of the previous version; null: none. */
  readonly effect: string | null;
}

/** Migrations that are not expand-only. New migrations are expand-only unless they are listed here. */
const CONTRACTING: Readonly<Record<string, string>> = {
  '0034_machine_links': 'drops the table auth_device_codes: earlier versions cannot link providers',
  '0045_hashed_sign_in_tokens': 'hashes session tokens: earlier versions end every session',
};

export function describeMigration(name: string): MigrationDescription {
  const effect = CONTRACTING[name] ?? null;
  return { kind: effect === null ? 'expand' : 'contract', effect };
}
