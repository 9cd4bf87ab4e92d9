#!/bin/sh
# Checks the Swift enclave helper: compiles it, runs the checks of its pure parts, and runs the contract suite against it.
# Run it when a file under packages/enclave/native changes; `npm test` does not. Run `npm ci` and `npx tsc --build` first.
#
# On a Mac it builds the real helper. On Linux it builds against the stand-ins of Apple's frameworks, with the Swift of
# Debian trixie in a folder of its own (root, debootstrap, 3.3 GB and some minutes the first time). SWIFT_CHECK_DIR names the
# folder; it is kept for the next run.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
native="$top/packages/enclave/native"

run_suite() {
  echo "== contract suite against $1"
  cd "$top"
  ENCLAVE_HELPER="$1" npx vitest run packages/enclave/test/contract.test.ts -t 'native helper'
}

if [ "$(uname -s)" = Darwin ]; then
  "$native/build.sh"
  echo '== checks of the pure parts'
  checks=$(mktemp -d)
  trap 'rm -rf "$checks"' EXIT
  swiftc "$native/Sources/CommandOutput.swift" "$native/Sources/JsonValue.swift" "$native/Sources/JsonParser.swift" \
    "$native/Sources/CanonicalJson.swift" "$native/checks/main.swift" -o "$checks/checks"
  "$checks/checks"
  run_suite "$native/bin/inference-enclave"
  exit 0
fi

work="${SWIFT_CHECK_DIR:-$(dirname "$(mktemp -u)")/inference-swift}"
root="$work/trixie"
mkdir -p "$work"

if [ ! -x "$root/usr/bin/swiftc" ]; then
  [ "$(id -u)" = 0 ] || { echo 'Making the Debian folder needs root.' >&2; exit 1; }
  command -v debootstrap >/dev/null || { echo 'debootstrap is missing: apt-get install debootstrap' >&2; exit 1; }
  echo "== Debian trixie with Swift in $root"
  nice debootstrap --variant=minbase --include=ca-certificates trixie "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}"
  mount --bind /proc "$root/proc"
  trap 'umount "$root/proc"' EXIT
  nice chroot "$root" apt-get install -y --no-install-recommends swiftlang libssl-dev libc6-dev libstdc++-14-dev
  umount "$root/proc"
  trap - EXIT
fi
if [ ! -e "$root/proc/self" ]; then
  mount --bind /proc "$root/proc"
  trap 'umount "$root/proc"' EXIT
fi

build="$root/check"
rm -rf "$build"
mkdir -p "$build/modules"
cp -R "$native/Sources" "$native/checks" "$native/stand-ins" "$build/"

cat > "$build/build.sh" <<'BUILD'
set -eu
cd /check
echo '== stand-ins'
for name in Security IOKit CryptoKit; do
  swiftc -emit-module -emit-library -static -parse-as-library -module-name "$name" -I modules -I stand-ins/COpenSSL "stand-ins/$name.swift" \
    -o "modules/lib$name.a" -emit-module-path "modules/$name.swiftmodule"
done
echo '== checks of the pure parts'
swiftc Sources/CommandOutput.swift Sources/JsonValue.swift Sources/JsonParser.swift Sources/CanonicalJson.swift checks/main.swift -o checks-program
./checks-program
echo '== helper'
swiftc -warnings-as-errors -I modules -I stand-ins/COpenSSL -L modules Sources/*.swift -lCryptoKit -lIOKit -lSecurity -lcrypto -o inference-enclave
BUILD
nice chroot "$root" sh /check/build.sh

# The program runs on this system, with the libraries of the Debian folder.
loader=$(ls "$root"/usr/lib64/ld-linux-*.so.* "$root"/usr/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
libraries=$(find "$root/usr" -name 'libswiftCore.so' -exec dirname {} \; | head -n 1)
machine=$(dirname "$(find "$root/usr/lib" -maxdepth 2 -name 'libcrypto.so.3' | head -n 1)")
cat > "$work/inference-enclave" <<RUN
#!/bin/sh
exec "$loader" --library-path "$libraries:$machine" "$build/inference-enclave" "\$@"
RUN
chmod +x "$work/inference-enclave"
run_suite "$work/inference-enclave"
