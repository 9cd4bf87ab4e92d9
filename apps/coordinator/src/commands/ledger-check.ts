/** `ledger-check` command: verifies every posting, balance and reservation of the ledger. Coordinators may keep running. */
import { StartupError } from '../config/startup-error.js';
import { checkLedger } from '../database/ledger/check-ledger.js';
import { type Command, EXIT, optionsOf } from './command.js';
import { withDatabase } from './command-database.js';
import { settingsOf } from './read-settings.js';

export const ledgerCheckCommand: Command = {
  usage: `ledger-check [--env-file FILE] [--json]

Reads the whole ledger of DATABASE_URL or DATA_DIR and prints each contradiction. Changes nothing.
Exit codes: 0 the ledger holds, 1 problems, 2 the database or the settings cannot be used.`,
  async run(args, { env, out, err }) {
    const { json = false } = optionsOf(args, { json: { type: 'boolean' } });
    let result: Awaited<ReturnType<typeof checkLedger>>;
    try {
      result = await withDatabase(settingsOf(env), checkLedger);
    } catch (error) {
      if (!(error instanceof StartupError)) throw error;
      err(error.message);
      return EXIT.unusable;
    }
    const { figures, problems } = result;
    if (json) out(JSON.stringify({ holds: problems.length === 0, figures, problems }, null, 2));
    else {
      for (const [name, value] of Object.entries(figures)) out(`${name.padEnd(10)} ${value.toLocaleString('en')}`);
      for (const problem of problems) err(`PROBLEM: ${problem}`);
      out(problems.length === 0 ? 'the ledger holds' : `${problems.length} problems`);
    }
    return problems.length === 0 ? EXIT.ok : EXIT.problem;
  },
};
