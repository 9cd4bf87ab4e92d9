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
  summary: 'Checks what is published of this machine against its evidence.',
  usage: `verify [--data-dir DIR] [--json]

The record of a machine is public while it is connected, so that the provider must run.
Exit codes: 0 all of it holds, 1 something does not, or nothing is published, 3 no provider runs, 4 the coordinator cannot be reached.`,
  run: verify,
};

/** The daemon itself waits three seconds for the coordinator. */
const STATUS_MS = 6_000;

async function verify(args: readonly string[]): Promise<number> {
  const { dataDir, json } = ownerOptions(args);
  const { coordinator, provider_id: providerId } = await requestStatus(dataDir, STATUS_MS);
  if (providerId === null) {
    process.stderr.write('The provider is still starting. Try again when its model is loaded.\n');
    return EXIT.needsOwner;
  }
  // Imported lazily: certificate checks need a large library.
  const { verifyPublishedRecord } = await import('../../account/published-record.js');
  const record = await verifyPublishedRecord(coordinator, providerId, Date.now());
  if (record === null) {
    if (json) await print([JSON.stringify({ provider_id: providerId, published: false, consistent: false, findings: [] })]);
    process.stderr.write('Nothing is published of this machine: it is not connected at this moment. `status` says why.\n');
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
    fit(`What ${clean(coordinator)} publishes of this machine`, 80),
    `(provider ${clean(providerId)})`,
    '',
    ...findings.flatMap(({ claim, value, result, explanation }) => {
      const claimed = fit(`${clean(claim)}: ${clean(String(value))}`, 68);
      return [`${left(WORDS[result], 10)}${claimed}`, ...wrapped(' '.repeat(12), explanation)];
    }),
    '',
    ...(anchor === 'simulated' ? ['The certificates are those of a simulation: clients know that by it.'] : []),
    ...wrapped(
      '',
      consistent
        ? 'All of it agrees with the evidence beside it. Anybody can check this with inference-verify.'
        : `${wrong} ${wrong === 1 ? 'claim does' : 'claims do'} not agree with the evidence. Clients that check will turn away; tell the operator.`,
    ),
    ...(findings.some(({ result }) => result === 'word')
      ? wrapped('', '"on trust": nothing in the record shows it; whoever believes it, believes the coordinator.')
      : []),
  ];
}
