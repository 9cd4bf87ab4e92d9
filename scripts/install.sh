#!/bin/sh
# Installs the provider agent for the current user: Node.js, unless a suitable version exists; the newest signed release that the
# coordinator offers; and the command `inference-provider` on the PATH. Needs no root, and can be repeated. Versions are installed
# side by side; a symbolic link selects the active version.
#
#   sh install.sh --coordinator https://coordinator.example
#   sh install.sh --uninstall
# shellcheck disable=SC2016 # programs for Node and lines for other shells are in single quotes
set -eu

# Base64 of the Ed25519 keys whose releases are accepted, inserted by `npm run release -- sign`.
RELEASE_KEYS=''

NODE_VERSION=24.16.0
NODE_BASE_URL=https://nodejs.org/dist
NODE_MIN='20.19.0'

node_sha256() {
  case $1 in
    darwin-arm64) echo 39189dab4eeb15706c424af0ac08a3044c9e48f7db12a7d77f6b7aafc7dd5df6 ;;
    linux-x64) echo 2faf6a387e9b62b888e21c54f01249fb27537ffecf1842f29f4c919d0a59a0ff ;;
    *) echo '' ;;
  esac
}

usage() {
  cat <<'END'
Usage: sh install.sh --coordinator URL [OPTIONS]
       sh install.sh --uninstall [--delete-data | --keep-data] [--delete-key] [--yes]

  --coordinator URL      coordinator that offers the releases
  --version X.Y.Z        install this version instead of the latest; required for a downgrade
  --prefix DIR           installation directory (default ~/.local/share/inference-provider)
  --bin-dir DIR          directory for the command (default ~/.local/bin)
  --release-key BASE64   use this release key instead of the one in this script
  --node-base-url URL    download Node.js from here (default https://nodejs.org/dist)
  --node-sha256 HEX      expected SHA-256 of the Node.js archive
  --private-node         download Node.js even if a suitable version is installed
  --dry-run              print the steps without changing anything
END
}

say() { printf '%s\n' "$*"; }
warn() { printf 'install.sh: %s\n' "$*" >&2; }
fail() {
  warn "$*"
  exit 1
}

quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

sha256_of() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1" | cut -d ' ' -f 1; else shasum -a 256 "$1" | cut -d ' ' -f 1; fi
}

platform_of() {
  case $(uname -s) in
    Darwin)
      # A shell under Rosetta reports x86_64 on a Mac with Apple silicon.
      if [ "$(uname -m)" = arm64 ] || [ "$(sysctl -n hw.optional.arm64 2>/dev/null || echo 0)" = 1 ]; then echo darwin-arm64; fi ;;
    Linux)
      case $(uname -m) in
        x86_64 | amd64) echo linux-x64 ;;
        aarch64 | arm64) echo linux-arm64 ;;
      esac ;;
  esac
}

# Allows plain HTTP only for this machine. Downloads are verified, but eavesdroppers would learn the installed version.
check_address() {
  case $1 in
    https://?*) ;;
    http://127.0.0.1:* | http://localhost:* | http://127.0.0.1/* | http://localhost/*) ;;
    *) fail "$2 must be an https URL: $1" ;;
  esac
}

# fetch URL FILE MAX_BYTES: downloads a file, or resumes an earlier download. Follows no redirects, and refuses larger files.
fetch() {
  tries=0
  while :; do
    code=0
    # Older versions of curl check only the announced size, so the shell limits the file too (blocks of 512 or 1024 bytes).
    (
      ulimit -f "$(($3 / 512 + 8))" 2>/dev/null || true
      exec curl --fail --silent --show-error --connect-timeout 20 --speed-limit 1024 --speed-time 30 --max-filesize "$3" \
        --continue-at - --output "$2" "$1"
    ) || code=$?
    [ "$code" -eq 0 ] && break
    # 33: the server does not support ranges.
    if [ "$code" -eq 33 ]; then rm -f "$2"; fi
    if [ "$code" -eq 23 ]; then fail "cannot write $2: is the disk full?"; fi
    # Too many bytes. 63: by curl's limit. 153: by the shell's limit (SIGXFSZ).
    if [ "$code" -eq 63 ] || [ "$code" -eq 153 ]; then rm -f "$2"; fail "$1 is larger than expected"; fi
    tries=$((tries + 1))
    [ "$tries" -lt 5 ] || return 1
    sleep "$tries"
  done
  # Some implementations of `wc` print spaces before the number.
  [ "$(($(wc -c <"$2")))" -le "$3" ] || { rm -f "$2"; fail "$1 is larger than expected"; }
}

# fetch_checked URL FILE SHA256 MAX_BYTES
fetch_checked() {
  if [ ! -f "$2" ]; then
    if [ -f "$2.part" ] && [ "$(sha256_of "$2.part")" = "$3" ]; then :
    else fetch "$1" "$2.part" "$4" || fail "cannot download $1. Run the same command again to resume the download"
    fi
    mv "$2.part" "$2"
  fi
  found=$(sha256_of "$2")
  if [ "$found" != "$3" ]; then
    rm -f "$2"
    fail "checksum mismatch for $1 (SHA-256 $found, expected $3). The download was deleted"
  fi
}

node_is_good() {
  "$1" -e '
    const min = process.argv[1].split(".").map(Number);
    const own = process.versions.node.split(".").map(Number);
    const at = own.findIndex((part, index) => part !== min[index]);
    process.exit(at < 0 || own[at] > min[at] ? 0 : 1);
  ' "$NODE_MIN" >/dev/null 2>&1
}

find_node() {
  node=''
  if [ "$private_node" -eq 0 ] && found=$(command -v node 2>/dev/null) && node_is_good "$found"; then
    node=$found
    say "Using Node.js $("$node" --version): $node"
    return
  fi
  if [ -x "$prefix/node/bin/node" ] && node_is_good "$prefix/node/bin/node"; then
    node=$prefix/node/bin/node
    say "Using Node.js: $node"
    return
  fi
  name=node-v$NODE_VERSION-$platform
  sum=${node_sum:-$(node_sha256 "$platform")}
  [ -n "$sum" ] || fail "cannot download Node.js for $platform. Install Node.js $NODE_MIN or newer, then run this command again"
  say "Downloading Node.js $NODE_VERSION from $NODE_BASE_URL"
  fetch_checked "$NODE_BASE_URL/v$NODE_VERSION/$name.tar.gz" "$prefix/downloads/$name.tar.gz" "$sum" 209715200
  say "Installing Node.js in $prefix/node"
  mkdir -p "$work/node"
  tar -xzf "$prefix/downloads/$name.tar.gz" -C "$work/node" || fail 'cannot unpack Node.js: is the disk full?'
  rm -rf "$prefix/node.old"
  if [ -e "$prefix/node" ]; then mv "$prefix/node" "$prefix/node.old"; fi
  mv "$work/node/$name" "$prefix/node"
  rm -rf "$prefix/node.old" "$prefix/downloads/$name.tar.gz"
  node=$prefix/node/bin/node
  node_is_good "$node" || fail "the downloaded Node.js does not run on this machine"
}

# Verifies a release's signature, and prints version, URL, SHA-256 and size, one per line.
read_release() {
  "$node" -e '
    const { createPublicKey, verify } = require("node:crypto");
    const { readFileSync } = require("node:fs");
    const [file, platform, wanted, min, ...keys] = process.argv.slice(1);
    const refuse = (why) => { console.error(`install.sh: ${why}`); process.exit(1); };
    let release;
    try { release = JSON.parse(readFileSync(file, "utf8")); } catch { refuse("the coordinator returned an invalid release description"); }
    const { version, url, sha256, size, node, notes, signature } = release ?? {};
    const texts = [version, release?.platform, url, sha256, node, notes, signature];
    if (!texts.every((text) => typeof text === "string") || !Number.isSafeInteger(size) || size < 1) refuse("the coordinator returned an invalid release description");
    const signed = JSON.stringify({ node, notes, platform: release.platform, sha256, size, url, version });
    const bytes = Buffer.concat([Buffer.from("inference/release/v1\0"), Buffer.from(signed)]);
    const spki = Buffer.from("302a300506032b6570032100", "hex");
    const isGood = keys.some((key) => {
      const raw = Buffer.from(key, "base64");
      if (raw.length !== 32) refuse("invalid release key: expected 32 bytes in base64");
      return verify(null, bytes, createPublicKey({ key: Buffer.concat([spki, raw]), format: "der", type: "spki" }), Buffer.from(signature, "base64"));
    });
    if (!isGood) refuse("the release has no valid signature. Nothing was installed");
    if (release.platform !== platform) refuse(`the release is for ${release.platform}, but this machine is ${platform}`);
    if (wanted !== "" && version !== wanted) refuse(`the coordinator returned version ${version} instead of ${wanted}`);
    if (!/^\d+\.\d+\.\d+$/.test(version) || !/^[0-9a-f]{64}$/.test(sha256) || !/^https?:\/\/[!-~]+$/.test(url)) refuse("the coordinator returned an invalid release description");
    const [own, need] = [process.versions.node, node].map((text) => text.split(".").map(Number));
    const at = own.findIndex((part, index) => part !== need[index]);
    if (at >= 0 && own[at] < need[at]) refuse(`version ${version} requires Node.js ${node} or newer. Run this command again with --private-node`);
    console.log([version, url, sha256, size].join("\n"));
  ' "$@"
}

unpack_release() {
  kinds=$(tar -tvzf "$1" | cut -c 1 | sort -u | tr -d '\n') || fail 'cannot read the archive'
  case $kinds in *[!-d]*) fail 'invalid archive: it contains links or special files' ;; esac
  if tar -tzf "$1" | grep -Eq '(^|/)\.\.(/|$)|^/'; then fail 'invalid archive: it contains paths outside its folder'; fi
  mkdir -p "$2"
  tar -xzf "$1" -C "$2" || fail 'cannot unpack the archive: is the disk full?'
  [ -f "$2/package/bin/inference-provider.js" ] || fail 'invalid archive: it does not contain the agent'
}

# point LINK TARGET: replaces a symbolic link atomically, so that a complete version is active at every moment.
point() {
  "$node" -e '
    const { renameSync, rmSync, symlinkSync } = require("node:fs");
    const [link, target] = process.argv.slice(1);
    rmSync(`${link}.new`, { force: true });
    symlinkSync(target, `${link}.new`);
    renameSync(`${link}.new`, link);
  ' "$1" "$2"
}

# refuse_older INSTALLED OFFERED: refuses a downgrade, because old releases have valid signatures, but known faults.
refuse_older() {
  "$node" -e '
    const [installed, offered] = process.argv.slice(1).map((version) => /^\d+\.\d+\.\d+$/.test(version) ? version.split(".").map(Number) : null);
    const at = installed === null ? -1 : offered.findIndex((part, index) => part !== installed[index]);
    process.exit(at >= 0 && offered[at] < installed[at] ? 1 : 0);
  ' "$1" "$2" || fail "version $2 is older than the installed version $1. Nothing was changed. To downgrade, add: --version $2"
}

write_launcher() {
  mkdir -p "$prefix/bin"
  cat >"$work/launcher" <<END
#!/bin/sh
# Starts the active version. A version on trial is started by the previous version's guard.
prefix=$(quoted "$prefix")
node=$(quoted "$node")
[ -x "\$node" ] || node=\$prefix/node/bin/node
[ -x "\$node" ] || node=\$(command -v node) || {
  echo 'inference-provider: Node.js was not found. Run install.sh again.' >&2
  exit 1
}
if [ "\${1:-}" = serve ] && [ -f "\$prefix/trial.json" ] && [ -f "\$prefix/guard/dist/update/guard/main.js" ]; then
  exec "\$node" "\$prefix/guard/dist/update/guard/main.js" "\$prefix" "\$@"
fi
exec "\$node" "\$prefix/current/bin/inference-provider.js" "\$@"
END
  chmod 755 "$work/launcher"
  mv "$work/launcher" "$prefix/bin/inference-provider"
}

link_command() {
  link=$bin_dir/inference-provider
  target=$prefix/bin/inference-provider
  if [ -L "$link" ] && [ "$(readlink "$link")" = "$target" ]; then
    say "The command is already linked: $link"
  elif [ -e "$link" ] || [ -L "$link" ]; then
    fail "$link exists and belongs to another installation. Remove it, or choose another directory with --bin-dir"
  else
    mkdir -p "$bin_dir"
    ln -s "$target" "$link"
    say "Linked the command: $link"
  fi
  case :$PATH: in
    *:"$bin_dir":*) ;;
    *)
      case ${SHELL:-} in */zsh) profile=.zprofile ;; */bash) profile=.bash_profile ;; *) profile=.profile ;; esac
      say ''
      say "$bin_dir is not in your PATH. To add it, run this command and open a new terminal:"
      say "  echo 'export PATH=\"$bin_dir:\$PATH\"' >> ~/$profile"
      ;;
  esac
}

# start_of PID: prints the start of a process, as text to compare, which does not change if the clock is set; or nothing.
start_of() {
  if [ -e /proc/self/stat ]; then
    # Field 22 of stat. The name, field 2, is in brackets and may contain spaces.
    { tr '\n' ' ' <"/proc/$1/stat" | sed 's/^.*) //' | cut -d ' ' -f 20; } 2>/dev/null || true
  else
    TZ=UTC0 LC_ALL=C ps -o lstart= -p "$1" 2>/dev/null | sed 's/^ *//; s/ *$//' || true
  fi
}

# holder_of FILE: prints the id of the process that holds a lock, or: absent, dead, unknown.
holder_of() {
  text=$(cat "$1" 2>/dev/null) || { echo absent; return; }
  id=$(printf '%s\n' "$text" | sed -n 1p)
  start=$(printf '%s\n' "$text" | sed -n 2p)
  case $id in
    '' | *[!0-9]*)
      # Older versions write the id after creating the file.
      if [ -n "$(find "$1" -mmin -1 2>/dev/null)" ]; then echo unknown; else echo dead; fi
      return ;;
  esac
  kill -0 "$id" 2>/dev/null || { echo dead; return; }
  # Older versions write no start.
  found=''
  if [ -n "$start" ]; then found=$(start_of "$id"); fi
  if [ -n "$found" ] && [ "$found" != "$start" ]; then echo dead; else echo "$id"; fi
}

refuse_held() {
  holder=$(holder_of "$1")
  case $holder in
    absent | dead) ;;
    unknown) fail 'another installation or update is running' ;;
    *) fail "another installation or update is running (process $holder)" ;;
  esac
}

# The agent's updater uses the same lock and the same rules (update-lock.ts).
lock() {
  lock=$prefix/update.lock
  own=$lock.$$
  # May be a second name of the lock, left by an interrupted run with the same id.
  rm -f "$own"
  # Written before it becomes the lock, because others take an empty lock for a dead one.
  printf '%s\n%s\n' $$ "$(start_of $$)" >"$own"
  if ! ln "$own" "$lock" 2>/dev/null; then replace_dead_lock; fi
  locked=1
  rm -f "$own"
}

# A second lock, the claim, ensures that only one process replaces a dead lock.
replace_dead_lock() {
  refuse_held "$lock"
  if ! ln "$own" "$lock.claim" 2>/dev/null; then
    if [ "$(holder_of "$lock.claim")" = dead ]; then remove_dead_claim; fi
    ln "$own" "$lock.claim" 2>/dev/null || fail 'another installation or update is running'
  fi
  claimed=1
  refuse_held "$lock"
  if [ "$holder" = absent ]; then
    ln "$own" "$lock" 2>/dev/null || fail 'another installation or update is running'
  else
    mv -f "$own" "$lock"
  fi
  locked=1
  rm -f "$lock.claim"
  claimed=0
}

# Renames first: the claim may be the live one of another process since it was read. Such a claim is put back.
remove_dead_claim() {
  mv "$lock.claim" "$own.dead" 2>/dev/null || return 0
  if [ "$(holder_of "$own.dead")" != dead ]; then ln "$own.dead" "$lock.claim" 2>/dev/null || true; fi
  rm -f "$own.dead"
}

cleanup() {
  [ -z "$work" ] || rm -rf "$work"
  rm -f "$prefix/update.lock.$$" "$prefix/update.lock.$$.dead"
  [ "$claimed" -eq 0 ] || rm -f "$prefix/update.lock.claim"
  [ "$locked" -eq 0 ] || rm -f "$prefix/update.lock"
}

interrupted() {
  cleanup
  trap - EXIT
  warn 'interrupted. Run the same command again to resume'
  exit 130
}

need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is required but not installed"; }

check_machine() {
  platform=$(platform_of)
  [ -n "$platform" ] || fail "unsupported machine ($(uname -s) $(uname -m)): the agent requires a Mac with Apple silicon"
  for tool in curl tar sed grep cut sort tr wc df find; do need "$tool"; done
  command -v sha256sum >/dev/null 2>&1 || need shasum
  if [ "$platform" = darwin-arm64 ]; then
    major=$(sw_vers -productVersion | cut -d . -f 1)
    [ "$major" -ge 14 ] || warn "macOS $major has not been tested; use macOS 14 or newer"
    xcode-select -p >/dev/null 2>&1 ||
      fail 'the command line tools are required to build the Secure Enclave helper. Run: xcode-select --install'
  fi
  if [ "$(id -u)" -eq 0 ]; then warn 'running as root is not required: the agent is installed for the user root only'; fi
}

uninstall() {
  launcher=$prefix/bin/inference-provider
  if [ -x "$launcher" ] && "$launcher" --version >/dev/null 2>&1; then exec "$launcher" uninstall "$@"; fi
  if [ ! -d "$prefix" ]; then
    say "Nothing is installed in $prefix."
    exit 0
  fi
  say 'The installed agent does not start. Only its files are removed.'
  link=$bin_dir/inference-provider
  if [ -L "$link" ] && [ "$(readlink "$link")" = "$launcher" ]; then
    rm -f "$link"
    say "Removed $link"
  fi
  rm -rf "$prefix"
  say "Removed $prefix"
  say 'The data directory (~/.inference-provider) and the background service, if any, were not removed.'
}

main() {
  coordinator='' version='' node_sum='' private_node=0 dry_run=0 removing=0 work='' locked=0 claimed=0
  prefix=$HOME/.local/share/inference-provider
  bin_dir=$HOME/.local/bin
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --dry-run) dry_run=1 ;;
      --private-node) private_node=1 ;;
      --uninstall) removing=1 ;;
      --coordinator | --version | --prefix | --bin-dir | --release-key | --node-base-url | --node-sha256)
        if [ $# -lt 2 ]; then warn "$1 requires a value"; exit 2; fi
        case $1 in
          --coordinator) coordinator=${2%/} ;;
          --version) version=$2 ;;
          --prefix) prefix=$2 ;;
          --bin-dir) bin_dir=$2 ;;
          --release-key) RELEASE_KEYS=$2 ;;
          --node-base-url) NODE_BASE_URL=${2%/} ;;
          --node-sha256) node_sum=$2 ;;
        esac
        shift ;;
      *)
        # Remaining options are passed to `inference-provider uninstall`.
        if [ "$removing" -eq 1 ]; then break; fi
        warn "unknown option: $1"
        usage >&2
        exit 2 ;;
    esac
    shift
  done
  case $prefix in /*) ;; *) fail '--prefix must be an absolute path' ;; esac
  case $bin_dir in /*) ;; *) fail '--bin-dir must be an absolute path' ;; esac
  if [ "$removing" -eq 1 ]; then uninstall "$@"; exit 0; fi
  if [ -z "$coordinator" ]; then warn '--coordinator is required'; usage >&2; exit 2; fi
  check_address "$coordinator" --coordinator
  check_address "$NODE_BASE_URL" --node-base-url
  [ -n "$RELEASE_KEYS" ] || fail 'this script contains no release key. Download it from the release server, or use --release-key'
  check_machine

  if [ "$dry_run" -eq 1 ]; then
    say "Would use Node.js $NODE_MIN or newer, or download Node.js $NODE_VERSION to $prefix/node"
    say "Would get ${version:-the latest release} for $platform from $coordinator and verify its signature"
    say "Would download it, verify its SHA-256, and install it in $prefix/versions"
    if [ "$platform" = darwin-arm64 ]; then say 'Would build the Secure Enclave helper'; fi
    say "Would link the command: $bin_dir/inference-provider"
    exit 0
  fi

  mkdir -p "$prefix/versions" "$prefix/downloads" || fail "cannot write to $prefix"
  trap interrupted INT TERM HUP
  trap cleanup EXIT
  lock
  # Removes temporary folders of interrupted runs.
  rm -rf "$prefix"/.install-*
  work=$prefix/.install-$$
  mkdir "$work"

  find_node

  say "Getting ${version:-the latest release} for $platform from $coordinator"
  fetch "$coordinator/v1/agent/releases/${version:-latest}?platform=$platform" "$work/release.json" 65536 ||
    fail "$coordinator has no such release for $platform, or cannot be reached"
  wanted=$version
  # shellcheck disable=SC2086 # the keys are words
  facts=$(read_release "$work/release.json" "$platform" "$version" "$NODE_MIN" $RELEASE_KEYS) || exit 1
  version=$(printf '%s\n' "$facts" | sed -n 1p)
  url=$(printf '%s\n' "$facts" | sed -n 2p)
  sum=$(printf '%s\n' "$facts" | sed -n 3p)
  size=$(printf '%s\n' "$facts" | sed -n 4p)
  say "Verified the signature of version $version"
  before=''
  if [ -L "$prefix/current" ]; then before=$(basename "$(readlink "$prefix/current")"); fi
  if [ -n "$before" ] && [ -z "$wanted" ]; then refuse_older "$before" "$version"; fi

  if [ -d "$prefix/versions/$version" ]; then
    say "Already downloaded: $prefix/versions/$version"
  else
    check_address "$url" 'the URL of the release'
    # An unpacked release takes about twice the archive's size; the rest is a reserve.
    free=$(df -Pk "$prefix" | sed -n 2p | tr -s ' ' | cut -d ' ' -f 4)
    [ "$((free * 1024))" -ge "$((size * 4 + 52428800))" ] ||
      fail "not enough disk space: $((free / 1024)) MB free, $((size * 4 / 1048576 + 50)) MB required"
    say "Downloading $url ($((size / 1048576)) MB)"
    archive=$prefix/downloads/$sum.tgz
    fetch_checked "$url" "$archive" "$sum" "$size"
    say "Verified the SHA-256. Installing in $prefix/versions/$version"
    unpack_release "$archive" "$work/unpacked"
    if [ "$platform" = darwin-arm64 ]; then
      say 'Building the Secure Enclave helper'
      "$node" "$work/unpacked/package/install/build-helper.mjs" --strict || fail 'cannot build the Secure Enclave helper'
    fi
    [ "$("$node" "$work/unpacked/package/bin/inference-provider.js" --version)" = "$version" ] ||
      fail 'the agent does not start on this machine'
    mv "$work/unpacked/package" "$prefix/versions/$version"
    rm -f "$archive"
  fi

  write_launcher
  rm -f "$prefix/trial.json"
  point "$prefix/current" "versions/$version"
  # Files that `uninstall` removes.
  "$node" -e 'console.log(JSON.stringify({ link: process.argv[1] }))' "$bin_dir/inference-provider" >"$work/install.json"
  mv "$work/install.json" "$prefix/install.json"
  if [ "$before" = "$version" ]; then say "Version $version is already installed."; else say "Installed version $version in $prefix."; fi
  link_command
  say ''
  if [ -n "$before" ] && [ "$before" != "$version" ]; then
    say 'To switch a running provider to the new version, run: inference-provider restart'
  else
    say "To set up this machine, run: inference-provider setup --coordinator $coordinator"
  fi
}

main "$@"
