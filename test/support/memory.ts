/** Measures resident memory and processor time of another process, on Linux and macOS. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';

export async function residentBytes(pid: number): Promise<number> {
  // Linux has the value in a file (proc(5)), which is cheaper to read ten times a second than the output of `ps`.
  const status = process.platform === 'linux' ? await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '') : '';
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? (await column('rss', pid));
  return Number(kilobytes) * 1024;
}

/** Used processor time in seconds; whole seconds on Linux. */
export async function processorSeconds(pid: number): Promise<number> {
  const parts = (await column('time', pid)).split(/[-:]/).map(Number);
  const [seconds = 0, minutes = 0, hours = 0, days = 0] = parts.reverse();
  return seconds + 60 * (minutes + 60 * (hours + 24 * days));
}

function column(name: string, pid: number): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('ps', ['-o', `${name}=`, '-p', String(pid)], (error, stdout) => {
      if (error !== null) reject(new Error(`there is no process ${pid}`));
      else resolve(stdout.trim());
    });
  });
}

/** Peak memory growth of the process during `work`, in bytes. */
export async function growthDuring(pid: number, work: () => Promise<unknown>, everyMs = 100): Promise<number> {
  const before = await residentBytes(pid);
  let max = before;
  let over = false;
  const watch = (async () => {
    while (!over) {
      max = Math.max(max, await residentBytes(pid));
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  })();
  try {
    await work();
  } finally {
    over = true;
  }
  await watch;
  return Math.max(max, await residentBytes(pid)) - before;
}
