#!/bin/sh
# Builds, signs and notarizes the macOS package from the folder that `npm run release -- macos` wrote. Needs a Mac with Apple
# silicon, the command line tools, and two certificates of the Apple Developer Program in the keychain.
#
#   APPLICATION_IDENTITY   "Developer ID Application: …", signs the programs
#   INSTALLER_IDENTITY     "Developer ID Installer: …", signs the package
#   NOTARY_PROFILE         profile that `xcrun notarytool store-credentials` stored
#   NODE_ARCHIVE           optional: a downloaded archive of Node
#
#   sh build-package.sh              for distribution
#   sh build-package.sh --unsigned   for a test on this Mac: ad hoc signatures, not notarized
set -eu

fail() {
  printf 'build-package.sh: %s\n' "$*" >&2
  exit 1
}

cd "$(dirname "$0")"
signed=1
case ${1:-} in
  '') ;;
  --unsigned) signed=0 ;;
  *) fail "unknown option $1; the only option is --unsigned" ;;
esac
[ "$(uname -s)" = Darwin ] || fail 'packages are built, signed and notarized with tools of macOS. Copy this folder to a Mac and run the script there.'
for tool in swiftc codesign pkgbuild productbuild pkgutil xcrun curl shasum tar file; do
  command -v "$tool" >/dev/null || fail "$tool is missing; run xcode-select --install"
done
[ -f release.env ] || fail 'release.env is missing; create this folder with: npm run release -- macos'
# shellcheck source=/dev/null
. ./release.env

if [ "$signed" -eq 1 ]; then
  : "${APPLICATION_IDENTITY:?set the name of the Developer ID Application certificate}"
  : "${INSTALLER_IDENTITY:?set the name of the Developer ID Installer certificate}"
  : "${NOTARY_PROFILE:?set the profile of xcrun notarytool store-credentials}"
  identity=$APPLICATION_IDENTITY
else
  identity=-
fi

rm -rf build
mkdir -p build
cp -R payload build/root
root=build/root
agent=$root/usr/local/lib/inference-provider

name=node-v$NODE_VERSION-darwin-arm64
archive=${NODE_ARCHIVE:-build/$name.tar.gz}
[ -n "${NODE_ARCHIVE:-}" ] || curl --fail --silent --show-error --output "$archive" "https://nodejs.org/dist/v$NODE_VERSION/$name.tar.gz"
printf '%s  %s\n' "$NODE_SHA256" "$archive" | shasum -a 256 --check --quiet || fail "$archive does not have the expected SHA-256"
mkdir -p "$agent/node"
tar -xzf "$archive" -C "$agent/node" --strip-components 1 "$name/bin/node" "$name/lib/node_modules/npm" "$name/LICENSE"

echo '== programs in Swift'
CODESIGN_IDENTITY=- sh "$agent/node_modules/@inference/enclave/native/build.sh"
CODESIGN_IDENTITY=- sh "$agent/menu-bar/build.sh"

sign() {
  if [ "$signed" -eq 1 ]; then codesign --force --options runtime --timestamp --sign "$identity" "$@"
  else codesign --force --options runtime --sign "$identity" "$@"
  fi
}

echo '== signatures'
# Notarization requires a signature with hardened runtime on every Mach-O file.
find "$root" -type f -exec sh -c 'for path; do case $(file -b "$path") in *Mach-O*) printf "%s\n" "$path" ;; esac; done' sh {} + >build/code.txt
while IFS= read -r path; do
  case $path in
    */node/bin/node) sign --entitlements entitlements.plist "$path" ;;
    *) sign "$path" ;;
  esac
done <build/code.txt
while IFS= read -r path; do codesign --verify --strict "$path"; done <build/code.txt

echo '== package'
package=inference-provider-$VERSION.pkg
pkgbuild --root "$root" --identifier inference-provider --version "$VERSION" --install-location / --ownership recommended \
  --scripts scripts build/agent.pkg
if [ "$signed" -eq 1 ]; then
  productbuild --distribution distribution.xml --package-path build --resources resources --sign "$INSTALLER_IDENTITY" --timestamp "$package"
  echo '== notarization'
  xcrun notarytool submit "$package" --keychain-profile "$NOTARY_PROFILE" --wait
  xcrun stapler staple "$package"
  xcrun stapler validate "$package"
  pkgutil --check-signature "$package"
else
  productbuild --distribution distribution.xml --package-path build --resources resources "$package"
fi
shasum -a 256 "$package"
