/** `StartupError`: the program cannot start or continue. The message is written for the operator, and is printed without a stack. */
export class StartupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartupError';
  }
}

/** A setting is invalid, so a restart would fail in the same way. Commands then exit with code 2. */
export class SettingsError extends StartupError {}

/** Short reason of a thrown value: its code (`EADDRINUSE`, `EACCES`, `SQLITE_CANTOPEN`, …), else the first line of its message. */
export function errorReason(error: unknown): string {
  if (error instanceof Error) {
    const problem = packageProblem(error);
    if (problem !== null) return problem;
    if ('code' in error && typeof error.code === 'string') return error.code;
    return error.message.split('\n')[0] ?? error.name;
  }
  return String(error);
}

/**
 * Explains an error of Node's module loader: the package is missing, not compiled, or compiled for another version of Node.
 *
 * Null for other errors.
 */
export function packageProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  // The package `bindings` throws this error without a code. npm 12 runs only install scripts of packages named by --allow-scripts.
  if (error.message.startsWith('Could not locate the bindings file')) {
    const name = packageInPath(error.message) ?? 'better-sqlite3';
    return `the package ${name} was not compiled: install the coordinator again, with npm's --allow-scripts=${name}`;
  }
  if (!('code' in error)) return null;
  if (error.code === 'ERR_MODULE_NOT_FOUND' || error.code === 'MODULE_NOT_FOUND') {
    const [, name] = /^Cannot find (?:package|module) '([^']+)'/.exec(error.message) ?? [];
    return name === undefined ? null : `the package ${name} is missing: install the coordinator again`;
  }
  if (error.code === 'ERR_DLOPEN_FAILED') {
    return `the package ${packageInPath(error.message) ?? 'with compiled code'} was not compiled for Node ${process.versions.node} on this machine: install the coordinator again`;
  }
  return null;
}

/** Name of the innermost package in the first path of a message; null: no path below node_modules. */
function packageInPath(message: string): string | null {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(message)?.[1] ?? null;
}

/** OpenSSL's error codes for a certificate whose authority Node does not trust. */
const UNKNOWN_AUTHORITY = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
]);

export const UNKNOWN_AUTHORITY_REMEDY =
  'The certificate is of an authority that Node does not know: start with NODE_EXTRA_CA_CERTS=FILE, its root certificate in PEM form.';

export function isUnknownAuthority(code: string): boolean {
  return UNKNOWN_AUTHORITY.has(code);
}
