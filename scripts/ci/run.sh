#!/usr/bin/env bash
# `npm run ci`: every check that a change must pass, after `npm ci`. Used locally, by .ci/run and by the public workflow.
set -euo pipefail
cd "$(dirname "$0")/../.."

step() { printf '\n== %s\n' "$1"; }

step 'lint'
npm run --silent lint

step 'types'
npm run --silent build -- --output-logs=errors-only
npm run --silent types

step 'import directions'
npm run --silent imports

step 'lock file'
node scripts/ci/check-lockfile.mjs

# Takes half a minute unless cached. Without the add-on, its tests are skipped with a notice.
step 'add-on for quantized image models'
npm run --silent image-add-on || echo 'not installed: its tests will not run'

# Without a browser, its tests are skipped with a notice. A full Chromium works too, at twice the processor time.
step 'browser'
if [ -z "${CHROMIUM_PATH:-}" ] && [ ! -x /usr/lib/chromium/chromium-headless-shell ] && [ ! -x /usr/bin/google-chrome ]; then
  install() { apt-get install -y -qq --no-install-recommends "$1" >/dev/null; }
  { apt-get update -qq && install chromium-headless-shell; } || [ -x /usr/bin/chromium ] || install chromium || echo 'no browser: its tests will not run'
fi

step 'message server'
if ! PATH="$PATH:/usr/sbin" command -v nats-server >/dev/null; then
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends nats-server; } >/dev/null || echo 'no nats-server: its tests will not run'
fi

step 'promtool'
if ! command -v promtool >/dev/null; then
  { apt-get update -qq && RUNLEVEL=1 apt-get install -y -qq --no-install-recommends prometheus; } >/dev/null || echo 'no promtool: the tests of alerting rules will not run'
fi

# A failing test file runs once more by itself. Files that pass only then are listed last as FLAKY.
step 'tests'
FLAKY_LIST="$(mktemp)"
node scripts/ci/tests.mjs "$FLAKY_LIST"

step 'smoke: a short run of each soak and bench'
npm run --silent smoke -- "$FLAKY_LIST"

# Tests external vectors if they are installed next to the checkout. The project's own tests do not need them.
vectors="${VECTORS_DIR:-../shared/vectors}"
if [ -d "$vectors" ]; then
  step 'vectors'
  VECTORS_DIR="$(cd "$vectors" && pwd)" npm run --silent vectors
else
  step "vectors: none at $vectors, not run"
fi

cat "$FLAKY_LIST"
rm -f "$FLAKY_LIST"
