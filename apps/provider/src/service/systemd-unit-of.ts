/** `systemdUnitOf`: the systemd unit that runs a process, such as one that an administrator wrote. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * Returns the unit's name, or `a unit` if the name is unknown. Null if something else than systemd started the process, such as a shell, or
 * if the process belongs to another user.
 *
 * A terminal, too, may run in a unit, and its shells inherit the environment. Only the unit's first process has its own id there
 * (systemd.exec(5), `SYSTEMD_EXEC_PID`, since 248).
 */
export function systemdUnitOf(pid: number, procfs = '/proc'): string | null {
  try {
    const environment = readFileSync(join(procfs, String(pid), 'environ'), 'utf8').split('\0');
    if (!environment.includes(`SYSTEMD_EXEC_PID=${pid}`)) return null;
    const groups = readFileSync(join(procfs, String(pid), 'cgroup'), 'utf8');
    // cgroup v2, or the hierarchy of systemd beside v1 (cgroups(7)).
    const path = /^(?:0:|\d+:name=systemd):(.*\.service)$/m.exec(groups)?.[1];
    return path === undefined ? 'a unit' : basename(path);
  } catch {
    // No such process, no right to read, or no procfs.
    return null;
  }
}
