/** Prints faults and errors of the soak `cluster`, and finds errors that no fault permits. */
import type { Fault } from './faults.js';
import type { Load, Outcome } from './load.js';

/** A fault that was injected, and measurements in milliseconds. */
export interface InjectedFault {
  readonly fault: Fault;
  /** Start of the fault, by `performance.now()`. */
  readonly from: number;
  /** Time of the recovery, by `performance.now()`; infinite until then. */
  to: number;
  recoveryMs: number;
  awayMs: number;
}

/** Prints one line per kind of fault. */
export function printInjectedFaults(injectedFaults: readonly InjectedFault[]): void {
  const names = [...new Set(injectedFaults.map(({ fault }) => fault.name))].sort();
  console.log(`\n${'fault'.padEnd(56)}${'times'.padStart(6)}${'longest recovery'.padStart(18)}${'longest absence'.padStart(17)}`);
  for (const name of names) {
    const own = injectedFaults.filter(({ fault }) => fault.name === name);
    const longest = (value: (injected: InjectedFault) => number): string => seconds(Math.max(...own.map(value)));
    console.log(
      `${name.padEnd(56)}${String(own.length).padStart(6)}${longest(({ recoveryMs }) => recoveryMs).padStart(18)}${longest(({ awayMs }) => awayMs).padStart(17)}`,
    );
  }
  console.log('');
}

/** Prints the number of errors that each fault permits. Returns the others as problems. */
export function printOutcomes({ paid, images, failures, sent }: Load, injectedFaults: readonly InjectedFault[]): string[] {
  console.log(
    `answers: ${paid.length} verified, ${images} of them images fetched through another coordinator, ${failures.length} errors, of ${sent} requests`,
  );
  const countByLine = new Map<string, number>();
  const problems: string[] = [];
  for (const outcome of failures) {
    const around = injectedFaults.filter(({ from, to }) => outcome.startedAt < to && outcome.endedAt > from);
    const cause = around.find(({ fault }) => fault.permits(outcome));
    const text = `${outcome.kind} ${outcome.kind === 'cut' ? '' : outcome.detail}`.trim();
    if (cause !== undefined) countByLine.set(`${cause.fault.name}: ${text}`, (countByLine.get(`${cause.fault.name}: ${text}`) ?? 0) + 1);
    else problems.push(describe(outcome, around));
  }
  for (const [line, count] of [...countByLine].sort()) console.log(`  ${String(count).padStart(5)}  ${line}`);
  return problems;
}

function describe({ kind, detail, coordinator, stream, model, startedAt, endedAt }: Outcome, around: readonly InjectedFault[]): string {
  const where = coordinator === null ? 'the balancer' : `coordinator-${coordinator + 1}`;
  const times = `${seconds(startedAt)} to ${seconds(endedAt)}`;
  const during =
    around.length === 0
      ? 'no fault'
      : around.map(({ fault }) => `${fault.name} ${fault.victim === null ? '' : fault.victim.index + 1}`).join(', ');
  return `${kind} (${detail}) through ${where}, ${stream ? 'stream' : 'plain'} of ${model}, from ${times}, during ${during}`;
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
