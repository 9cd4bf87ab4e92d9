/** Reason why the program cannot start or continue: one sentence for the operator, without a stack. */
export class StartupError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StartError';
  }
}

/** A setting that cannot be used: the next start would fail, too. */
export class SettingsError extends StartupError {}

/** System error code (`EADDRINUSE`, `EACCES`, `SQLITE_CANTOPEN`, …) of any thrown value, or the first line of its message. */
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
 * Problem of the installation if Node could not load a package: missing, not compiled, or compiled for another Node. Null for other errors.
 * Node's messages name the package between quotes, and the importing or compiled file.
 */
export function packageProblem(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  // Message of the package `bindings`, without a code. npm 12 runs no install scripts of packages unless they are named.
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

/** Innermost package of the first path in a message; null: the message has no path of a package. */
function packageInPath(message: string): string | null {
  return /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(message)?.[1] ?? null;
}

/** OpenSSL's codes for a certificate of an authority that Node does not know. */
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
