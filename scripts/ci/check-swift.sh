#!/bin/sh
# Compiles the Swift programs (enclave helper, menu bar item), and runs their unit checks, the helper's contract tests and the
# menu's tests. Run after changes in packages/enclave/native or apps/provider/menu-bar, because `npm test` does not compile Swift.
# Needs `npm ci` and `npm run build`.
#
# On a Mac, the real programs are built. On Linux, stubs replace Apple's frameworks, and the compiler is Swift of Debian trixie,
# installed in a separate folder (needs root, debootstrap, 3.3 GB, and some minutes the first time). SWIFT_CHECK_DIR names the
# folder, which is reused by later runs.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
native="$top/packages/enclave/native"
menu="$top/apps/provider/menu-bar"

run_suite() {
  echo "== contract suite against $1"
  cd "$top"
  ENCLAVE_HELPER="$1" npx vitest run packages/enclave/test/contract.test.ts -t 'native helper'
}

# run_menu PROGRAM CHECKS
run_menu() {
  echo "== menu bar item $1"
  "$2" "$menu/checks/outlooks.json"
  cd "$top"
  MENU_BAR_PROGRAM="$1" MENU_BAR_CHECKS="$2" npx vitest run apps/provider/test/menu-bar/menu-bar.test.ts
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
  "$menu/build.sh"
  swiftc "$menu/Sources/AgentStatus.swift" "$menu/Sources/Outlook.swift" "$menu/Sources/ControlSocket.swift" \
    "$menu/Sources/MenuModel.swift" "$menu/checks/main.swift" -o "$checks/menu-checks"
  run_menu "$menu/bin/inference-menu-bar" "$checks/menu-checks"
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
mkdir "$build/menu"
cp -R "$menu/Sources" "$menu/checks" "$menu/stand-ins" "$build/menu/"

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
echo '== menu bar item'
cd menu
swiftc -emit-module -emit-library -static -parse-as-library -module-name AppKit stand-ins/AppKit.swift \
  -o ../modules/libAppKit.a -emit-module-path ../modules/AppKit.swiftmodule
swiftc -warnings-as-errors Sources/AgentStatus.swift Sources/Outlook.swift Sources/ControlSocket.swift Sources/MenuModel.swift checks/main.swift \
  -o ../menu-checks
swiftc -warnings-as-errors -I ../modules -L ../modules Sources/*.swift -lAppKit -o ../inference-menu-bar
BUILD
nice chroot "$root" sh /check/build.sh

# Runs the program on this system, with the shared libraries in the Debian folder.
loader=$(ls "$root"/usr/lib64/ld-linux-*.so.* "$root"/usr/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
libraries=$(find "$root/usr" -name 'libswiftCore.so' -exec dirname {} \; | head -n 1)
machine=$(dirname "$(find "$root/usr/lib" -maxdepth 2 -name 'libcrypto.so.3' | head -n 1)")
for program in inference-enclave inference-menu-bar menu-checks; do
  cat > "$work/$program" <<RUN
#!/bin/sh
exec "$loader" --library-path "$libraries:$machine" "$build/$program" "\$@"
RUN
  chmod +x "$work/$program"
done
run_suite "$work/inference-enclave"
run_menu "$work/inference-menu-bar" "$work/menu-checks"
