/** `verify`: verifies this machine's published record as any client can. */
import type { PublishedRecord } from '../../account/published-record.js';
import { requestStatus } from '../../control/control-client.js';
import type { Command } from '../command.js';
import { EXIT } from '../exit-codes.js';
import { ownerOptions } from '../input/owner-options.js';
import { fit, left } from '../output/columns.js';
import { clean, print, wrapped } from '../output/terminal.js';

export const verifyCommand: Command = {
  name: 'verify',
  summary: "Verifies this machine's public record, as clients do.",
  usage: `verify [--data-dir DIR] [--json]

The record is published only while the machine is connected, so the provider must be running.
Exit codes: 0 consistent, 1 inconsistent or not published, 3 no provider is running, 4 the coordinator is unreachable.`,
  run: verify,
};

/** Longer than the daemon waits for the coordinator (`VIEW_MS`). */
const STATUS_MS = 6_000;

async function verify(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const { coordinator, provider_id: providerId } = await requestStatus(dataDir, STATUS_MS);
  if (providerId === null) {
    process.stderr.write('The provider is still starting. Try again once the models are loaded.\n');
    return EXIT.needsOwner;
  }
  // Imported lazily: certificate checks need a large library.
  const { verifyPublishedRecord } = await import('../../account/published-record.js');
  const record = await verifyPublishedRecord(coordinator, providerId, Date.now());
  if (record === null) {
    if (json) await print([JSON.stringify({ provider_id: providerId, published: false, consistent: false, findings: [] })]);
    process.stderr.write('This machine has no public record, because it is not connected. See: inference-provider status\n');
    return EXIT.needsOwner;
  }
  const { anchor, findings, consistent } = record;
  const body = { provider_id: providerId, published: true, anchor, consistent, findings };
  await print(json ? [JSON.stringify(body, null, 2)] : recordLines(coordinator, record));
  return consistent ? EXIT.fine : EXIT.needsOwner;
}

const RESULT_LABELS: Readonly<Record<PublishedRecord['findings'][number]['result'], string>> = {
  reproduced: 'holds',
  simulated: 'simulated',
  word: 'on trust',
  contradicted: 'WRONG',
};

function recordLines(coordinator: string, { providerId, anchor, findings, consistent }: PublishedRecord): string[] {
  const wrong = findings.filter(({ result }) => result === 'contradicted').length;
  return [
    fit(`Public record of this machine at ${clean(coordinator)}`, 80),
    `(provider ${clean(providerId)})`,
    '',
    ...findings.flatMap(({ claim, value, result, explanation }) => {
      const claimed = fit(`${clean(claim)}: ${clean(String(value))}`, 68);
      return [`${left(RESULT_LABELS[result], 10)}${claimed}`, ...wrapped(' '.repeat(12), explanation)];
    }),
    '',
    ...(anchor === 'simulated' ? ['The certificates are simulated, and clients can see that.'] : []),
    ...wrapped(
      '',
      consistent
        ? 'All claims match the evidence. Anyone can check this with inference-verify.'
        : `${wrong} ${wrong === 1 ? 'claim does' : 'claims do'} not match the evidence. Clients that verify will refuse this machine. Report this to the operator.`,
    ),
    ...(findings.some(({ result }) => result === 'word')
      ? wrapped('', '"on trust": the record has no evidence for this claim; only the coordinator vouches for it.')
      : []),
  ];
}
