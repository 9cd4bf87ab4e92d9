/**
 * Process that holds the write lock of a database file, or checkpoints repeatedly, until any message arrives. Arguments: the file,
 * and `lock` or `checkpoint`. Sends `ready` after its start.
 */
import Sqlite from 'better-sqlite3';

const [file = '', work = ''] = process.argv.slice(2);
const database = new Sqlite(file, { timeout: 60_000 });
let stopping = false;

function stop(): void {
  stopping = true;
  if (database.inTransaction) database.exec('commit');
  database.close();
  process.disconnect();
}

function checkpoint(): void {
  if (stopping) return;
  database.pragma('wal_checkpoint(TRUNCATE)');
  setImmediate(checkpoint);
}

process.once('message', stop);
if (work === 'lock') database.exec('begin immediate');
else checkpoint();
process.send?.('ready');
