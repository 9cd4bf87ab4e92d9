/**
 * A process that holds the write lock of a database file, or moves its log into the file again and again, until it is told to stop
 * (any message). Arguments: the file, and `lock` or `checkpoint`. Says `ready` when it has begun.
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
