#!/bin/sh
# Installs the provider agent for this user: Node unless a suitable one exists, the coordinator's newest signed release, and the
# command on the PATH. Needs no root and can be repeated. Versions lie side by side; one link selects the active version.
#
#   sh install.sh --coordinator https://coordinator.example
#   sh install.sh --uninstall
# shellcheck disable=SC2016 # programs for Node and lines for other shells are in single quotes
set -eu

# Base64 of the Ed25519 keys whose releases are accepted, inserted by `npm run release -- sign`.
RELEASE_KEYS=''

NODE_VERSION=24.16.0
NODE_BASE_URL=https://nodejs.org/dist
NODE_LEAST='20.19.0'

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

  --coordinator URL      where releases are advertised
  --version X.Y.Z        a certain release in place of the newest; the only way to an older one than is installed
  --prefix DIR           where it is installed (default ~/.local/share/inference-provider)
  --bin-dir DIR          where the command is linked (default ~/.local/bin)
  --release-key BASE64   another release key than the one in this script
  --node-base-url URL    where Node is fetched (default https://nodejs.org/dist)
  --node-sha256 HEX      what its archive must hash to
  --private-node         fetches Node even if a good one is there
  --dry-run              says what would be done, and does nothing
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

# Plain HTTP is for this machine only: downloads are verified, but eavesdroppers would learn the installed version.
check_address() {
  case $1 in
    https://?*) ;;
    http://127.0.0.1:* | http://localhost:* | http://127.0.0.1/* | http://localhost/*) ;;
    *) fail "$2 must be an https address, and it is: $1" ;;
  esac
}

# fetch URL FILE MAX_BYTES: resumes an earlier download. Refuses redirects and further bytes.
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
    # 33: the server does not support ranges. 22 with a whole file: the download is already complete.
    if [ "$code" -eq 33 ]; then rm -f "$2"; fi
    if [ "$code" -eq 23 ]; then fail "$2 cannot be written: is the disk full?"; fi
    # Too many bytes. 63: by curl's limit. 153: by the shell's limit (SIGXFSZ).
    if [ "$code" -eq 63 ] || [ "$code" -eq 153 ]; then rm -f "$2"; fail "$1 is larger than it should be"; fi
    tries=$((tries + 1))
    [ "$tries" -lt 5 ] || return 1
    sleep "$tries"
  done
  # Some `wc` put spaces before the number.
  [ "$(($(wc -c <"$2")))" -le "$3" ] || { rm -f "$2"; fail "$1 is larger than it should be"; }
}

# fetch_checked URL FILE SHA256 MAX_BYTES
fetch_checked() {
  if [ ! -f "$2" ]; then
    if [ -f "$2.part" ] && [ "$(sha256_of "$2.part")" = "$3" ]; then :
    else fetch "$1" "$2.part" "$4" || fail "$1 cannot be fetched; what came is kept, and the same command goes on with it"
    fi
    mv "$2.part" "$2"
  fi
  found=$(sha256_of "$2")
  if [ "$found" != "$3" ]; then
    rm -f "$2"
    fail "what came from $1 is not what it should be (SHA-256 $found in place of $3); it was thrown away"
  fi
}

node_is_good() {
  "$1" -e '
    const least = process.argv[1].split(".").map(Number);
    const own = process.versions.node.split(".").map(Number);
    const at = own.findIndex((part, index) => part !== least[index]);
    process.exit(at < 0 || own[at] > least[at] ? 0 : 1);
  ' "$NODE_LEAST" >/dev/null 2>&1
}

find_node() {
  node=''
  if [ "$private_node" -eq 0 ] && found=$(command -v node 2>/dev/null) && node_is_good "$found"; then
    node=$found
    say "Node is there: $node ($("$node" --version))"
    return
  fi
  if [ -x "$prefix/node/bin/node" ] && node_is_good "$prefix/node/bin/node"; then
    node=$prefix/node/bin/node
    say "Node is there: $node"
    return
  fi
  name=node-v$NODE_VERSION-$platform
  sum=${node_sum:-$(node_sha256 "$platform")}
  [ -n "$sum" ] || fail "no Node is known for $platform: install Node $NODE_LEAST or newer, then run this again"
  say "Fetching Node $NODE_VERSION from $NODE_BASE_URL"
  fetch_checked "$NODE_BASE_URL/v$NODE_VERSION/$name.tar.gz" "$prefix/downloads/$name.tar.gz" "$sum" 209715200
  say "Unpacking Node into $prefix/node"
  mkdir -p "$work/node"
  tar -xzf "$prefix/downloads/$name.tar.gz" -C "$work/node" || fail 'Node cannot be unpacked: is the disk full?'
  rm -rf "$prefix/node.old"
  if [ -e "$prefix/node" ]; then mv "$prefix/node" "$prefix/node.old"; fi
  mv "$work/node/$name" "$prefix/node"
  rm -rf "$prefix/node.old" "$prefix/downloads/$name.tar.gz"
  node=$prefix/node/bin/node
  node_is_good "$node" || fail "the Node that was fetched does not run on this machine"
}

# Prints version, URL, SHA-256 and size of a release with a valid signature, each on a line.
read_release() {
  "$node" -e '
    const { createPublicKey, verify } = require("node:crypto");
    const { readFileSync } = require("node:fs");
    const [file, platform, wanted, least, ...keys] = process.argv.slice(1);
    const refuse = (why) => { console.error(`install.sh: ${why}`); process.exit(1); };
    let release;
    try { release = JSON.parse(readFileSync(file, "utf8")); } catch { refuse("the coordinator described the release in a way that is not understood"); }
    const { version, url, sha256, size, node, notes, signature } = release ?? {};
    const texts = [version, release?.platform, url, sha256, node, notes, signature];
    if (!texts.every((text) => typeof text === "string") || !Number.isSafeInteger(size) || size < 1) refuse("the coordinator described the release in a way that is not understood");
    const signed = JSON.stringify({ node, notes, platform: release.platform, sha256, size, url, version });
    const bytes = Buffer.concat([Buffer.from("inference/release/v1\0"), Buffer.from(signed)]);
    const spki = Buffer.from("302a300506032b6570032100", "hex");
    const isGood = keys.some((key) => {
      const raw = Buffer.from(key, "base64");
      if (raw.length !== 32) refuse("a release key has 32 bytes in base64");
      return verify(null, bytes, createPublicKey({ key: Buffer.concat([spki, raw]), format: "der", type: "spki" }), Buffer.from(signature, "base64"));
    });
    if (!isGood) refuse("the release is not signed by its publisher; nothing was installed");
    if (release.platform !== platform) refuse(`the release is for ${release.platform}, and this machine is ${platform}`);
    if (wanted !== "" && version !== wanted) refuse(`the coordinator offered version ${version} in place of ${wanted}`);
    if (!/^\d+\.\d+\.\d+$/.test(version) || !/^[0-9a-f]{64}$/.test(sha256) || !/^https?:\/\/[!-~]+$/.test(url)) refuse("the release is described in a way that is not understood");
    const [own, need] = [process.versions.node, node].map((text) => text.split(".").map(Number));
    const at = own.findIndex((part, index) => part !== need[index]);
    if (at >= 0 && own[at] < need[at]) refuse(`version ${version} needs Node ${node}; run this with --private-node`);
    console.log([version, url, sha256, size].join("\n"));
  ' "$@"
}

unpack_release() {
  kinds=$(tar -tvzf "$1" | cut -c 1 | sort -u | tr -d '\n') || fail 'the archive cannot be read'
  case $kinds in *[!-d]*) fail 'the archive holds something other than files and folders' ;; esac
  if tar -tzf "$1" | grep -Eq '(^|/)\.\.(/|$)|^/'; then fail 'the archive holds files that would lie elsewhere'; fi
  mkdir -p "$2"
  tar -xzf "$1" -C "$2" || fail 'the archive cannot be unpacked: is the disk full?'
  [ -f "$2/package/bin/inference-provider.js" ] || fail 'the archive holds something else than the agent'
}

# Replaces the link atomically, so that a complete version is active at every moment.
point() {
  "$node" -e '
    const { renameSync, rmSync, symlinkSync } = require("node:fs");
    const [link, target] = process.argv.slice(1);
    rmSync(`${link}.new`, { force: true });
    symlinkSync(target, `${link}.new`);
    renameSync(`${link}.new`, link);
  ' "$1" "$2"
}

# refuse_older INSTALLED OFFERED: refuses a downgrade, because old releases have valid signatures and known faults.
refuse_older() {
  "$node" -e '
    const [installed, offered] = process.argv.slice(1).map((version) => /^\d+\.\d+\.\d+$/.test(version) ? version.split(".").map(Number) : null);
    const at = installed === null ? -1 : offered.findIndex((part, index) => part !== installed[index]);
    process.exit(at >= 0 && offered[at] < installed[at] ? 1 : 0);
  ' "$1" "$2" || fail "the coordinator offers version $2, which is older than $1, which is installed; nothing was changed. To install it all the same: --version $2"
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
  echo 'inference-provider: Node is gone; run install.sh again' >&2
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
    say "The command is linked already: $link"
  elif [ -e "$link" ] || [ -L "$link" ]; then
    fail "$link is there and is not of this installation: remove it, or give another --bin-dir"
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
      say "$bin_dir is not on your PATH. Add it with this line, then open a new terminal:"
      say "  echo 'export PATH=\"$bin_dir:\$PATH\"' >> ~/$profile"
      ;;
  esac
}

# The agent's own updates take the same lock.
lock() {
  if ! (set -C && echo $$ >"$prefix/update.lock") 2>/dev/null; then
    holder=$(cat "$prefix/update.lock" 2>/dev/null || echo '')
    if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then fail "another installation or update is under way (process $holder)"; fi
    echo $$ >"$prefix/update.lock"
  fi
  locked=1
}

cleanup() {
  [ -z "$work" ] || rm -rf "$work"
  [ "$locked" -eq 0 ] || rm -f "$prefix/update.lock"
}

interrupted() {
  cleanup
  trap - EXIT
  warn 'interrupted; the same command goes on where this one stopped'
  exit 130
}

need() { command -v "$1" >/dev/null 2>&1 || fail "$1 is needed and is not there"; }

check_machine() {
  platform=$(platform_of)
  [ -n "$platform" ] || fail "there is no agent for this machine ($(uname -s) $(uname -m)): it needs a Mac with Apple silicon"
  for tool in curl tar sed grep cut sort wc df; do need "$tool"; done
  command -v sha256sum >/dev/null 2>&1 || need shasum
  if [ "$platform" = darwin-arm64 ]; then
    major=$(sw_vers -productVersion | cut -d . -f 1)
    [ "$major" -ge 14 ] || warn "macOS $major has not been tried; macOS 14 or newer has"
    xcode-select -p >/dev/null 2>&1 ||
      fail 'the Secure Enclave helper is built on this Mac, for which the command line tools are needed. Run: xcode-select --install'
  fi
  if [ "$(id -u)" -eq 0 ]; then warn 'this runs as root, which it does not need: the agent is installed for the user root alone'; fi
}

uninstall() {
  launcher=$prefix/bin/inference-provider
  if [ -x "$launcher" ] && "$launcher" --version >/dev/null 2>&1; then exec "$launcher" uninstall "$@"; fi
  if [ ! -d "$prefix" ]; then
    say "Nothing is installed in $prefix."
    exit 0
  fi
  say 'The installed agent does not start, so that only its files are removed.'
  link=$bin_dir/inference-provider
  if [ -L "$link" ] && [ "$(readlink "$link")" = "$launcher" ]; then
    rm -f "$link"
    say "Removed $link"
  fi
  rm -rf "$prefix"
  say "Removed $prefix"
  say 'The data directory (~/.inference-provider) and a background service, if there is one, were left alone.'
}

main() {
  coordinator='' version='' node_sum='' private_node=0 dry_run=0 removing=0 work='' locked=0
  prefix=$HOME/.local/share/inference-provider
  bin_dir=$HOME/.local/bin
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --dry-run) dry_run=1 ;;
      --private-node) private_node=1 ;;
      --uninstall) removing=1 ;;
      --coordinator | --version | --prefix | --bin-dir | --release-key | --node-base-url | --node-sha256)
        if [ $# -lt 2 ]; then warn "$1 needs a value"; exit 2; fi
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
        # Further options are for the agent's own `uninstall`.
        if [ "$removing" -eq 1 ]; then break; fi
        warn "there is no option $1"
        usage >&2
        exit 2 ;;
    esac
    shift
  done
  case $prefix in /*) ;; *) fail '--prefix must be an absolute path' ;; esac
  case $bin_dir in /*) ;; *) fail '--bin-dir must be an absolute path' ;; esac
  if [ "$removing" -eq 1 ]; then uninstall "$@"; exit 0; fi
  if [ -z "$coordinator" ]; then warn '--coordinator is missing'; usage >&2; exit 2; fi
  check_address "$coordinator" --coordinator
  check_address "$NODE_BASE_URL" --node-base-url
  [ -n "$RELEASE_KEYS" ] || fail 'this script names no release key; get it from where the releases are, or give --release-key'
  check_machine

  if [ "$dry_run" -eq 1 ]; then
    say "Would use Node $NODE_LEAST or newer, or fetch Node $NODE_VERSION into $prefix/node"
    say "Would ask $coordinator for ${version:-the newest release} for $platform, and check its signature"
    say "Would fetch it, check its SHA-256, and unpack it into $prefix/versions"
    if [ "$platform" = darwin-arm64 ]; then say 'Would build the Secure Enclave helper'; fi
    say "Would link the command as $bin_dir/inference-provider"
    exit 0
  fi

  mkdir -p "$prefix/versions" "$prefix/downloads" || fail "$prefix cannot be written"
  trap interrupted INT TERM HUP
  trap cleanup EXIT
  lock
  # Work folders of killed runs.
  rm -rf "$prefix"/.install-*
  work=$prefix/.install-$$
  mkdir "$work"

  find_node

  say "Asking $coordinator for ${version:-the newest release} for $platform"
  fetch "$coordinator/v1/agent/releases/${version:-latest}?platform=$platform" "$work/release.json" 65536 ||
    fail "$coordinator offers no release for $platform, or cannot be reached"
  wanted=$version
  # shellcheck disable=SC2086 # the keys are words
  facts=$(read_release "$work/release.json" "$platform" "$version" "$NODE_LEAST" $RELEASE_KEYS) || exit 1
  version=$(printf '%s\n' "$facts" | sed -n 1p)
  url=$(printf '%s\n' "$facts" | sed -n 2p)
  sum=$(printf '%s\n' "$facts" | sed -n 3p)
  size=$(printf '%s\n' "$facts" | sed -n 4p)
  say "Version $version; its signature is right"
  before=''
  if [ -L "$prefix/current" ]; then before=$(basename "$(readlink "$prefix/current")"); fi
  if [ -n "$before" ] && [ -z "$wanted" ]; then refuse_older "$before" "$version"; fi

  if [ -d "$prefix/versions/$version" ]; then
    say "It is unpacked already: $prefix/versions/$version"
  else
    check_address "$url" 'the address of the release'
    # An unpacked release takes about twice its size; the rest is a reserve.
    free=$(df -Pk "$prefix" | sed -n 2p | tr -s ' ' | cut -d ' ' -f 4)
    [ "$((free * 1024))" -ge "$((size * 4 + 52428800))" ] ||
      fail "the disk has $((free / 1024)) MB free, and $((size * 4 / 1048576 + 50)) MB are needed; make room first"
    say "Fetching $url ($((size / 1048576)) MB)"
    archive=$prefix/downloads/$sum.tgz
    fetch_checked "$url" "$archive" "$sum" "$size"
    say "Its SHA-256 is right. Unpacking it into $prefix/versions/$version"
    unpack_release "$archive" "$work/unpacked"
    if [ "$platform" = darwin-arm64 ]; then
      say 'Building the Secure Enclave helper'
      "$node" "$work/unpacked/package/install/build-helper.mjs" --strict || fail 'the enclave helper was not built'
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
  if [ "$before" = "$version" ]; then say "Version $version was installed already"; else say "Installed version $version in $prefix"; fi
  link_command
  say ''
  if [ -n "$before" ] && [ "$before" != "$version" ]; then
    say 'A provider that runs still is the version before. Have it use the new one with: inference-provider restart'
  else
    say "Next: inference-provider setup --coordinator $coordinator"
  fi
}

main "$@"
