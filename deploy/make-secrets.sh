#!/bin/sh
# Creates the secrets of deploy/compose.yaml that nobody has to choose, and an alert_webhook_url to replace. Existing files stay.
# usage: sudo deploy/make-secrets.sh [DIR]        DIR: /etc/inference
set -eu
umask 077
dir=${1:-/etc/inference}
mkdir -p "$dir/secrets"

random() { openssl rand -hex 32; }
[ -s "$dir/secrets/postgres_password" ] || random > "$dir/secrets/postgres_password"
[ -s "$dir/secrets/grafana_password" ] || random > "$dir/secrets/grafana_password"
[ -s "$dir/secrets/alert_webhook_url" ] || echo https://alerts.invalid/replace-me > "$dir/secrets/alert_webhook_url"
[ -s "$dir/secrets/database_url" ] ||
  printf 'postgres://inference:%s@postgres:5432/inference\n' "$(cat "$dir/secrets/postgres_password")" > "$dir/secrets/database_url"

# Docker binds the files as they are, so that each must belong to the user of its container.
chmod 711 "$dir" "$dir/secrets"
chown 65532 "$dir/secrets/database_url"
chown 999 "$dir/secrets/postgres_password"
chown 472 "$dir/secrets/grafana_password"
chown 65534 "$dir/secrets/alert_webhook_url"
if [ -d "$dir/cluster" ]; then
  chmod 711 "$dir/cluster"
  # Not the authority's key: it belongs on no server.
  for file in "$dir"/cluster/coordinator-*.nk "$dir"/cluster/nats-* "$dir"/cluster/ca.pem; do chown 65532 "$file"; done
else
  echo "Next: npm run cluster -- keys 3 $dir/cluster --servers nats:4222, then this script again." >&2
fi
if grep -q replace-me "$dir/secrets/alert_webhook_url"; then
  echo "Next: put the address of an incoming webhook into $dir/secrets/alert_webhook_url, or alerts reach nobody." >&2
fi
