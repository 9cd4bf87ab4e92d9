/** Steps of `setup` for enrolment in device management: `chooseEnrolment` before the start of the provider, and `enrol` after it. */
import { setTimeout as delay } from 'node:timers/promises';
import { configPath } from '../../config/data-dir.js';
import { editConfig } from '../../config/edit-config.js';
import type { DaemonStatus } from '../../control/daemon-status.js';
import { openAddress } from '../commands/login.js';
import { untilInterrupted } from '../input/interrupt.js';
import { answeringDaemon } from '../input/service-options.js';
import { clean, print, wrapped } from '../output/terminal.js';
import type { Setup } from './steps.js';

const POLL_MS = 1_000;
/** The agent requests enrolment two seconds after the connection. */
const OFFER_MS = 45_000;

const EXPLANATION = [
  '',
  ...wrapped(
    '',
    'Enrolment lets the coordinator ask this Mac for a certificate from Apple, which trust level "hardware" needs. Many networks send requests only to such Macs.',
  ),
  ...wrapped(
    '  Can see:    ',
    'device information such as serial number, name and macOS version, and whether FileVault, System Integrity Protection and secure boot are on.',
  ),
  ...wrapped('  Cannot:     ', 'see files, apps, location or browsing; lock or erase this Mac; install anything or change settings.'),
  ...wrapped('  To undo it: ', 'System Settings, General, Device Management: remove the profile.'),
];

/** The choice is stored in `config.toml`. */
export async function chooseEnrolment({ dataDir, answers, settled, prompt }: Setup): Promise<boolean> {
  const isSimulated = answers.simulatedEnclave || settled.simulatedEnclave;
  if (answers.enrol === null && (settled.enrol || isSimulated || prompt === null)) return settled.enrol;
  if (answers.enrol === null) await print(EXPLANATION);
  const wants = answers.enrol ?? (await prompt?.yesOrNo('Enrol this Mac in device management', true)) ?? false;
  if (wants !== settled.enrol) editConfig(configPath(dataDir), [{ path: ['enrolment', 'enrol'], value: wants }]);
  if (!wants) await print(['Enrolment: none. Trust level stays self_signed; run setup --enrol to change that.']);
  return wants;
}

/** Shows the address of the profile. On a terminal, waits until this Mac is enrolled or the owner skips the step. */
export async function enrol({ dataDir, prompt, answers }: Setup): Promise<void> {
  const offered = await enrolmentState(dataDir, OFFER_MS);
  if (offered.kind === 'enrolled') return print(['Enrolment: this Mac is enrolled']);
  if (offered.kind === 'refused')
    return print([`Enrolment: not offered by the coordinator now (${clean(offered.reason).replaceAll('_', ' ')})`]);
  if (offered.kind === 'unknown')
    return print(['Enrolment: the coordinator has not answered yet. The address will be in: inference-provider logs']);
  const isOpened = answers.mayOpenBrowser && openAddress(offered.url);
  await print([
    '',
    'To enrol this Mac:',
    `  1. ${isOpened ? 'Safari or your browser opens' : 'Open in Safari on this Mac'}: ${clean(offered.url)}`,
    '     The address works once, for 30 minutes.',
    '  2. Allow the download of the profile.',
    '  3. In System Settings, General, Device Management, open the profile and choose Install.',
  ]);
  if (prompt === null) return;
  process.stdout.write('Waiting for the enrolment. Ctrl-C skips this step; the provider continues.\n');
  await untilInterrupted('Enrolment skipped. The profile can still be installed while its address is valid.', async (signal) => {
    for (;;) {
      const state = await enrolmentState(dataDir, 0);
      if (state.kind === 'enrolled') {
        await print(['Enrolment: this Mac is enrolled']);
        return 0;
      }
      await delay(POLL_MS, undefined, { signal });
    }
  });
}

type EnrolmentState =
  | { readonly kind: 'enrolled' }
  | { readonly kind: 'offered'; readonly url: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unknown' };

/** Waits at most `limitMs` while the state is unknown. */
async function enrolmentState(dataDir: string, limitMs: number): Promise<EnrolmentState> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const state = stateOf(await answeringDaemon(dataDir));
    if (state.kind !== 'unknown' || performance.now() >= deadline) return state;
    await delay(POLL_MS);
  }
}

export function stateOf(status: DaemonStatus | null): EnrolmentState {
  if (status === null || status.trust === null) return { kind: 'unknown' };
  if (!status.trust.parts.some(({ reason }) => reason === 'not_enrolled')) return { kind: 'enrolled' };
  const { enrolment } = status;
  if (enrolment === undefined) return { kind: 'unknown' };
  return enrolment.state === 'offered' ? { kind: 'offered', url: enrolment.url } : { kind: 'refused', reason: enrolment.reason };
}
