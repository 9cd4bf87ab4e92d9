/** `systemProblem` explains common file system errors to the owner: a clause without capital letter and full stop, or null. Pure. */
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
