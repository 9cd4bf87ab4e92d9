/** `npm run ledger-check` verifies the ledger of `DATABASE_URL` or `DATA_DIR`. Exits 1 on a problem, 2 on an unreadable database. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from '../apps/coordinator/dist/config/config.js';
import { StartupError } from '../apps/coordinator/dist/config/startup-error.js';
import { openDatabase } from '../apps/coordinator/dist/database/connection/open-database.js';
import { checkLedger } from '../apps/coordinator/dist/database/ledger/check-ledger.js';

async function main(): Promise<number> {
  const { databaseUrl, dataDir } = readConfig(process.env);
  const file = join(dataDir, 'coordinator', 'coordinator.db');
  if (databaseUrl === null && !existsSync(file)) throw new StartupError(`There is no database ${file}; set DATA_DIR or DATABASE_URL.`);
  const database = await openDatabase(databaseUrl === null ? { file } : { url: databaseUrl });
  try {
    const { figures, problems } = await checkLedger(database);
    for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(10)} ${value.toLocaleString('en')}`);
    for (const problem of problems) console.error(`PROBLEM: ${problem}`);
    console.log(problems.length === 0 ? 'the ledger holds' : `${problems.length} problems`);
    return problems.length === 0 ? 0 : 1;
  } finally {
    await database.destroy();
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof StartupError ? error.message : error);
    process.exit(2);
  },
);
