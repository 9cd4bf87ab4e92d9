/** `formula`: returns the Homebrew formula of a release. `npm run release -- sign` writes it for the operator's tap (formula repository). */

export interface FormulaRelease {
  readonly version: string;
  /** https address of the darwin-arm64 archive. */
  readonly url: string;
  readonly sha256: string;
}

/** Text of `inference-provider.rb`. Throws on a value that could end its Ruby string literal. */
export function formula({ version, url, sha256 }: FormulaRelease): string {
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`${version} is not a version such as 1.2.3`);
  if (!/^https:\/\/[\w.~:/?&=%@+,-]+$/.test(url))
    throw new Error(`a formula needs an https address without special characters, not ${url}`);
  if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Error('a SHA-256 has 64 hexadecimal digits');
  return FORMULA.replace('@HOMEPAGE@', new URL(url).origin).replace('@URL@', url).replace('@VERSION@', version).replace('@SHA256@', sha256);
}

const FORMULA = String.raw`# Written by "npm run release -- sign". Put it into the folder Formula of your tap.
require "json"

class InferenceProvider < Formula
  desc "Serves AI models from this Mac to API clients, with signed responses"
  homepage "@HOMEPAGE@"
  url "@URL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on arch: :arm64
  depends_on macos: :sonoma
  depends_on "node"

  # Homebrew cannot write longer install names (library paths) into prebuilt libraries.
  preserve_rpath
  skip_clean "libexec"

  def install
    libexec.install Dir["*"]
    node = Formula["node"].opt_bin/"node"
    (bin/"inference-provider").write <<~SH
      #!/bin/sh
      exec "#{node}" "#{libexec}/bin/inference-provider.js" "$@"
    SH
    launcher = HOMEBREW_PREFIX/"bin/inference-provider"
    # Tells the agent that Homebrew installs its updates.
    (libexec/"installer.json").write JSON.generate({ kind: "homebrew", launcher: launcher.to_s })
    system node, libexec/"install/build-helper.mjs", "--strict"
    system "sh", libexec/"menu-bar/build.sh"
    chmod 0755, bin/"inference-provider"
    generate_completions_from_executable(bin/"inference-provider", "completion", shells: [:bash, :zsh, :fish])
  end

  def caveats
    <<~EOS
      Set up this Mac with the address of your coordinator:
        inference-provider setup --coordinator https://coordinator.example

      Setup can start the provider in the background. Use that service or
      "brew services", not both. After an upgrade:
        inference-provider restart

      Show the provider in the menu bar:
        inference-provider menu-bar on

      Before "brew uninstall", sign out and remove the background service:
        inference-provider uninstall
    EOS
  end

  service do
    run [opt_bin/"inference-provider", "serve", "--service"]
    keep_alive successful_exit: false
    environment_variables PATH: std_service_path_env
    log_path var/"log/inference-provider.log"
    error_log_path var/"log/inference-provider.log"
  end

  test do
    assert_equal "#{version}\n", shell_output("#{bin}/inference-provider --version")
    status = shell_output("#{bin}/inference-provider status --json --data-dir #{testpath}/data", 3)
    assert_equal "not_running", JSON.parse(status)["state"]
  end
end
`;
