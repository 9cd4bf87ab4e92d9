/** `startupErrorText`: the text for the owner about any error of a command or of the daemon's start. */
import { EnclaveError } from '@inference/enclave';
import { AlreadyRunningError } from './control/control-server.js';
import { MachineLockedError } from './control/machine-lock.js';
import { systemProblem } from './files/system-error.js';
import { InsecureModeError } from './host/hardening/secret-modes.js';
import { EngineStartError } from './model-process/supervised-process.js';
import { ModelFileError } from './models/gguf-header.js';
import { ModelStoreError } from './models/store/model-store.js';
import { DownloadError } from './models/store/transfer.js';
import { ServiceError } from './service/service.js';

/** A command or the daemon's start failed for a reason without an error class of its own. The message is for the owner, without a full stop. */
export class StartupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartupError';
  }
}

/** The error as one line for the owner, for any thrown value. */
export function startupErrorText(error: unknown): string {
  if (error instanceof EngineStartError) return oneLine(`The model could not be started: ${error.message}.`);
  if (error instanceof EnclaveError) return oneLine(`The enclave could not be used: ${error.message}.`);
  const isWorded = [
    StartupError,
    ModelFileError,
    DownloadError,
    ModelStoreError,
    AlreadyRunningError,
    MachineLockedError,
    InsecureModeError,
    ServiceError,
  ].some((kind) => error instanceof kind);
  if (isWorded && error instanceof Error) return oneLine(`${capitalize(error.message)}.`);
  const problem = systemProblem(error);
  if (problem !== null) return oneLine(`${capitalize(problem)}.`);
  return oneLine(`Unexpected error: ${error instanceof Error ? error.message : 'unknown reason'}.`);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replace(/\.{2,}$/, '.');
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
