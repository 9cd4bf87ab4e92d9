#!/bin/sh
# Builds the menu bar item on a Mac with Apple silicon, and signs it ad hoc: `sh build.sh [FILE]`, by default bin/inference-menu-bar. Needs
# the command line tools (`xcode-select --install`). CODESIGN_IDENTITY names a certificate to sign with instead.
set -eu

if [ "$(uname -s)" != Darwin ]; then
  echo 'The menu bar item is built on a Mac.' >&2
  exit 1
fi
if ! command -v swiftc >/dev/null; then
  echo 'swiftc is missing: run xcode-select --install' >&2
  exit 1
fi

sources=$(cd "$(dirname "$0")" && pwd)/Sources
program=${1:-$(dirname "$sources")/bin/inference-menu-bar}
mkdir -p "$(dirname "$program")"
swiftc -O -target arm64-apple-macos13.0 "$sources"/*.swift -o "$program.new"
codesign --force --options runtime --sign "${CODESIGN_IDENTITY:--}" "$program.new"
# An atomic rename, so that launchd starts either the old or the new program.
mv "$program.new" "$program"
echo "built $program"
