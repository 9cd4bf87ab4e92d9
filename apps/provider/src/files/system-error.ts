/** `systemProblem` describes a file system error for the owner. Pure. */

/** Without capital letter and full stop; null for other errors. */
export function systemProblem(error: unknown): string | null {
  const { code, path } = (error ?? {}) as NodeJS.ErrnoException;
  const what = typeof path === 'string' ? path : 'it';
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full; free some space and try again';
    case 'EROFS':
      return `${what} is on a read-only disk`;
    case 'EACCES':
    case 'EPERM':
      return `${what} cannot be read or written by you; restore its owner and mode (chown, chmod)`;
    default:
      return null;
  }
}
