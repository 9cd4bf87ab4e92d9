/** Public API: the client of the enclave helper, and the command lines of the Swift and the simulated helper. */
export type { Enclave, OpenEnclaveOptions, SealingKeyRequest, SignedE2eResponse } from './client/enclave.js';
export { openEnclave } from './client/enclave.js';
export type { EnclaveEvent, OnEnclaveEvent } from './client/events.js';
export { nativeHelperBuild, nativeHelperCommand, nativeHelperPath, simulatedHelperCommand } from './commands.js';
export { EnclaveError, type EnclaveErrorCode, HELPER_ERROR_CODES, type HelperErrorCode } from './contract/errors.js';
export type { HelperKind, KeyProtection } from './contract/replies.js';
export { type Agent, CONTRACT_VERSION, type E2eReceiptDraft, MAX_LINE_BYTES, type ReceiptDraft } from './contract/requests.js';
export { KEY_FILE } from './simulated/key-file.js';
export { MACHINE_FILE, type SimulatedMachine } from './simulated/machine.js';
