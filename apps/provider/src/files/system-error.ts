/** `systemProblem` describes a file system error for the owner. Pure. */

/** Without capital letter and full stop; null for other errors. */
export function systemProblem(error: unknown): string | null {
  const { code, path } = (error ?? {}) as NodeJS.ErrnoException;
  const what = typeof path === 'string' ? path : 'it';
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'the disk is full; make room, and do it again';
    case 'EROFS':
      return `${what} lies on a disk that takes no changes`;
    case 'EACCES':
    case 'EPERM':
      return `${what} cannot be read or written by you; make it and its folder yours again (chown, chmod)`;
    default:
      return null;
  }
}
