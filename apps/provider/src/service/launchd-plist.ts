/** The property list of the launchd user agent (launchd.plist(5)). Pure. */
import { build } from 'plist';
import type { ServiceDefinition } from './service.js';

/** Seconds between two starts of a service that ends by itself. launchd has no growing pauses. */
const THROTTLE_SECONDS = 10;

export function launchdPlist({ label, command, environment, outputFile, dataDir, stopSeconds }: ServiceDefinition): string {
  return build({
    Label: label,
    ProgramArguments: [...command],
    EnvironmentVariables: { ...environment },
    WorkingDirectory: dataDir,
    RunAtLoad: true,
    // An end that was asked for (exit code 0) is the end; anything else is started again.
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: THROTTLE_SECONDS,
    ExitTimeOut: stopSeconds,
    // Background would keep it off the performance cores.
    ProcessType: 'Standard',
    Umask: 0o077,
    // No core dumps: they would hold prompts and keys.
    SoftResourceLimits: { Core: 0 },
    HardResourceLimits: { Core: 0 },
    StandardOutPath: outputFile,
    StandardErrorPath: outputFile,
  });
}
