/** The numbers of one machine: what it gets of the traffic, how fast it is, what it earned. */
import type { ConsoleMachineView } from '@inference/formats';
import { Money } from '../../ui/display/money.js';
import { counted, formatRate, formatShare } from '../../ui/display/number.js';
import { Stat, Stats } from '../../ui/display/stat.js';
import { lastDays } from './days.js';
import { sumOf } from './earnings.js';
import { useEarnings } from './queries.js';

export function MachineFigures({ machine: { provider_id, status, last_seen } }: { readonly machine: ConsoleMachineView }) {
  const month = useEarnings(lastDays(30, Date.now())).data?.data.filter((row) => row.provider_id === provider_id);
  const today = month?.filter(({ day }) => day === lastDays(1, Date.now()).to);
  const rate = Math.max(0, ...(status?.models.map(({ decode_tps }) => decode_tps) ?? [last_seen?.decode_tps ?? 0]));
  return (
    <Stats>
      <Stat label="Earned today" value={today === undefined ? undefined : <Money microUsd={sumOf(today).earned} />} hint="UTC" />
      <Stat
        label="Earned in 30 days"
        value={month === undefined ? undefined : <Money microUsd={sumOf(month).earned} />}
        hint={month === undefined ? undefined : `with ${counted(sumOf(month).jobs, 'job')}`}
      />
      <Stat
        label="Share of traffic"
        value={status === null ? '—' : formatShare(status.share)}
        hint={status === null ? 'while it is connected' : `${counted(status.placements, 'request')} since it connected`}
      />
      <Stat
        label="Tokens per second"
        value={rate === 0 ? '—' : formatRate(rate)}
        hint={status === null ? 'when it was last seen' : 'of its fastest model'}
      />
      <Stat label="Jobs now" value={status === null ? '—' : `${status.running_jobs} of ${status.slots}`} />
    </Stats>
  );
}
