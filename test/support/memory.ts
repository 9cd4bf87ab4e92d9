/** Measures resident memory and processor time of another process with `ps`, on Linux and macOS. */
import { execFile } from 'node:child_process';

/** Resident memory in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  return Number(await column('rss', pid)) * 1024;
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
