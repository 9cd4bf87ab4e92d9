/** The text of the systemd user unit (systemd.service(5), systemd.exec(5)). Pure. */
import type { ServiceDefinition } from './service.js';

export function systemdUnit({ command, environment, outputFile, dataDir, stopSeconds }: ServiceDefinition): string {
  return `[Unit]
Description=Inference provider
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${command.map((word) => quote(word).replaceAll('$', '$$$$')).join(' ')}
WorkingDirectory=${path(dataDir)}
${Object.entries(environment)
  .map(([name, value]) => `Environment=${quote(`${name}=${value}`)}`)
  .join('\n')}
StandardOutput=append:${path(outputFile)}
StandardError=inherit
# Exit code 0 is a requested stop. After a failure, the service restarts with a delay that grows to five minutes.
Restart=on-failure
RestartSec=2
RestartSteps=8
RestartMaxDelaySec=300
# SIGTERM goes to the daemon, which ends its children. Processes that remain after its exit or the timeout are killed.
KillMode=mixed
TimeoutStopSec=${stopSeconds}
# Core dumps would contain prompts and keys.
LimitCORE=0
UMask=0077
# Only settings that work in a user unit on every system: without namespaces.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
SystemCallArchitectures=native

[Install]
WantedBy=default.target
`;
}

/** Quotes a word of a command line or assignment, and escapes specifiers (%). */
function quote(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('\n', '\\n');
  return `"${escaped}"`;
}

/** A path extends to the end of its line, so only specifiers are escaped. */
function path(text: string): string {
  return text.replaceAll('%', '%%');
}
