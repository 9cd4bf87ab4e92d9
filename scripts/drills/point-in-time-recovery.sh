#!/usr/bin/env bash
# Rehearses "Point-in-time recovery" of docs/backup.md: starts a private PostgreSQL with WAL archiving, drops a table, and recovers
# the database to the second before. Prints each command. Needs a built coordinator and PostgreSQL's programs (in PG_BIN, if set).
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql@*/bin 2>/dev/null | tail -n 1 || true)}
[ -x "$bin/initdb" ] || { echo 'PostgreSQL was not found: set PG_BIN to the folder of initdb and pg_ctl.' >&2; exit 2; }

base=$(mktemp -d "${TMPDIR:-/tmp}/point-in-time-XXXXXX")
port=$(node -e "const s=require('net').createServer().listen(0,'127.0.0.1',()=>{console.log(s.address().port);s.close()})")
export DATABASE_URL="postgres://postgres@127.0.0.1:$port/inference" DATA_DIR="$base/data" DEVELOPMENT=1 PORT=0 LOG_LEVEL=info
coordinator=''

# PostgreSQL does not run as root.
as_postgres() {
  printf '$ %s\n' "$*"
  if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}
sql() { "$bin/psql" -X -q -At -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$port" -U postgres -d "${2:-inference}" -c "$1"; }
program="$root/apps/coordinator/bin/inference-coordinator.js"
finish() {
  [ -z "$coordinator" ] || kill -KILL "$coordinator" 2>/dev/null || true
  for data in main recovered; do
    [ ! -f "$base/$data/postmaster.pid" ] || as_postgres "$bin/pg_ctl" stop -s -m immediate -D "$base/$data" || true
  done
  rm -rf "$base"
}
trap finish EXIT

mkdir "$base/archive" "$base/data"
[ "$(id -u)" != 0 ] || chown postgres "$base" "$base/archive"

echo '== A server that archives its log'
as_postgres "$bin/initdb" -D "$base/main" --username=postgres --auth=trust --encoding=UTF8 --no-sync > "$base/initdb.log"
cat >> "$base/main/postgresql.conf" <<EOF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
wal_level = replica
archive_mode = on
archive_command = 'test ! -f $base/archive/%f && cp %p $base/archive/%f'
archive_timeout = 60
EOF
as_postgres "$bin/pg_ctl" start -s -w -D "$base/main" -l "$base/main.log"
sql 'create database inference' postgres

echo '== A coordinator with a deposit'
node "$program" serve > "$base/coordinator.log" 2>&1 &
coordinator=$!
until grep -q '"listening"' "$base/coordinator.log"; do kill -0 "$coordinator"; sleep 0.2; done
address=$(node -p "require('fs').readFileSync('$base/coordinator.log','utf8').split('\n').filter(Boolean).map(JSON.parse).find(l=>l.msg==='listening').address")
key=$(node -p "require('$base/data/coordinator/development-keys.json').admin_key")

echo '== Base backup'
as_postgres "$bin/pg_basebackup" -h 127.0.0.1 -p "$port" -U postgres -D "$base/base" --wal-method=stream --checkpoint=fast
as_postgres "$bin/pg_verifybackup" "$base/base"

echo '== A deposit after the base backup, then a mistake'
account=$(sql "select id from accounts where name = 'development'")
curl -fsS -X POST "$address/admin/v1/accounts/$account/deposits" -H "Authorization: Bearer $key" -H 'content-type: application/json' \
  -d '{"amount_micro_usd": 1234567, "reference": "after-the-base-backup"}' > "$base/deposit.json"
sleep 1
target=$(sql 'select now()')
sleep 1
sql 'drop table postings cascade'
segment=$(sql 'select pg_walfile_name(pg_switch_wal())')
until [ -f "$base/archive/$segment" ]; do sleep 0.2; done

echo "== Recovery to $target"
kill -TERM "$coordinator"
wait "$coordinator" || true
coordinator=''
as_postgres "$bin/pg_ctl" stop -s -m fast -D "$base/main"
begun=$(date +%s)
as_postgres cp -a "$base/base" "$base/recovered"
cat >> "$base/recovered/postgresql.conf" <<EOF
restore_command = 'cp $base/archive/%f %p'
recovery_target_time = '$target'
recovery_target_action = 'promote'
EOF
as_postgres touch "$base/recovered/recovery.signal"
as_postgres "$bin/pg_ctl" start -s -w -D "$base/recovered" -l "$base/recovered.log"
until [ "$(sql 'select pg_is_in_recovery()')" = f ]; do sleep 0.2; done
echo "recovered in $(($(date +%s) - begun)) s"

echo '== Ledger check'
node "$program" ledger-check
[ "$(sql "select count(*) from postings where amount = 1234567")" = 1 ] || { echo 'FAILED: the deposit is missing' >&2; exit 1; }
echo 'the deposit after the base backup is there, and the dropped table too'

echo '== Back to a running network: sessions end, keyset epochs are skipped, and a new transparency log begins'
node "$program" backup --out "$base/backups"
node "$program" restore --from "$base"/backups/* --force --new-log gateway.example/e2e/log-2
