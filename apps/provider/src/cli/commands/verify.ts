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
  summary: "Verifies this machine's published record against its evidence.",
  usage: `verify [--data-dir DIR] [--json]

The record is published only while the machine is connected, so the provider must run.
Exit codes: 0 consistent, 1 inconsistent or not published, 3 no provider runs, 4 the coordinator is unreachable.`,
  run: verify,
};

/** The daemon itself waits three seconds for the coordinator. */
const STATUS_MS = 6_000;

async function verify(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const { coordinator, provider_id: providerId } = await requestStatus(dataDir, STATUS_MS);
  if (providerId === null) {
    process.stderr.write('The provider is still starting. Try again when the models are loaded.\n');
    return EXIT.needsOwner;
  }
  // Imported lazily: certificate checks need a large library.
  const { verifyPublishedRecord } = await import('../../account/published-record.js');
  const record = await verifyPublishedRecord(coordinator, providerId, Date.now());
  if (record === null) {
    if (json) await print([JSON.stringify({ provider_id: providerId, published: false, consistent: false, findings: [] })]);
    process.stderr.write('No record of this machine is published: the machine is not connected now. Run: inference-provider status\n');
    return EXIT.needsOwner;
  }
  const { anchor, findings, consistent } = record;
  const body = { provider_id: providerId, published: true, anchor, consistent, findings };
  await print(json ? [JSON.stringify(body, null, 2)] : recordLines(coordinator, record));
  return consistent ? EXIT.fine : EXIT.needsOwner;
}

const WORDS: Readonly<Record<PublishedRecord['findings'][number]['result'], string>> = {
  reproduced: 'holds',
  simulated: 'simulated',
  word: 'on trust',
  contradicted: 'WRONG',
};

/** Output lines without line feeds. Pure. */
function recordLines(coordinator: string, { providerId, anchor, findings, consistent }: PublishedRecord): string[] {
  const wrong = findings.filter(({ result }) => result === 'contradicted').length;
  return [
    fit(`Record of this machine, published by ${clean(coordinator)}`, 80),
    `(provider ${clean(providerId)})`,
    '',
    ...findings.flatMap(({ claim, value, result, explanation }) => {
      const claimed = fit(`${clean(claim)}: ${clean(String(value))}`, 68);
      return [`${left(WORDS[result], 10)}${claimed}`, ...wrapped(' '.repeat(12), explanation)];
    }),
    '',
    ...(anchor === 'simulated' ? ['The certificates belong to a simulation, and clients can see that.'] : []),
    ...wrapped(
      '',
      consistent
        ? 'All claims agree with the evidence. Anyone can check with inference-verify.'
        : `${wrong} ${wrong === 1 ? 'claim does' : 'claims do'} not agree with the evidence. Clients that verify will refuse this machine; report this to the operator.`,
    ),
    ...(findings.some(({ result }) => result === 'word')
      ? wrapped('', '"on trust": without evidence in the record; only the coordinator vouches for the claim.')
      : []),
  ];
}
