#!/bin/sh
# Builds the Secure Enclave helper on a Mac with Apple silicon into native/bin, and signs it ad hoc. Needs the command line
# tools (`xcode-select --install`), nothing else. CODESIGN_IDENTITY names a certificate to sign with instead.
set -eu

cd "$(dirname "$0")"
if [ "$(uname -s)" != Darwin ]; then
  echo 'The enclave helper is built on a Mac; elsewhere use the simulated one.' >&2
  exit 1
fi
if ! command -v swiftc >/dev/null; then
  echo 'swiftc is missing: run xcode-select --install' >&2
  exit 1
fi

mkdir -p bin
swiftc -O -target arm64-apple-macos13.0 Sources/*.swift -o bin/inference-enclave.new
codesign --force --options runtime --sign "${CODESIGN_IDENTITY:--}" bin/inference-enclave.new
# In one step, so that an agent that starts just now finds the old helper or the new one.
mv bin/inference-enclave.new bin/inference-enclave
echo "built $(pwd)/bin/inference-enclave"
