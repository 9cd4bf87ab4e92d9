/** Badges for verdicts. Every page uses these badges to show whether a machine or an answer is verified. */
import './trust.css';
import { CircleHelp, type LucideIcon, PenLine, ShieldAlert, ShieldCheck } from 'lucide-react';
import { formatCount } from '../../ui/display/figures.js';
import { Skeleton } from '../../ui/feedback/placeholders.js';
import { useTrustAnchor } from './trust-anchor.js';
import { machineVerdict, VERDICTS, type Verdict } from './verdicts.js';

const ICONS: Readonly<Record<Verdict, LucideIcon>> = {
  hardware: ShieldCheck,
  simulated: ShieldCheck,
  claimed: ShieldCheck,
  self_signed: PenLine,
  level_hardware: CircleHelp,
  untrusted: ShieldAlert,
  failed: ShieldAlert,
  unverified: CircleHelp,
};

interface VerdictBadgeProps {
  readonly verdict: Verdict;
  /** Number of machines with this verdict, in a summary of several machines. */
  readonly count?: number;
}

export function VerdictBadge({ verdict, count }: VerdictBadgeProps) {
  const { label, tone, meaning } = VERDICTS[verdict];
  const Icon = ICONS[verdict];
  return (
    <span className="verdict" data-verdict={verdict} data-tone={tone} title={meaning}>
      <Icon size={15} aria-hidden="true" />
      <span>{count === undefined ? label : `${formatCount(count)} × ${label}`}</span>
    </span>
  );
}

interface MachineVerdictBadgeProps extends Pick<VerdictBadgeProps, 'count'> {
  /** Trust level. Null and `none` mean not trusted. */
  readonly trustLevel: string | null;
  /** Whether the machine reports a simulated enclave. Absent: unknown. */
  readonly simulated?: boolean;
}

/** Verdict on a machine by its trust level and the root of this network's certificates. */
export function MachineVerdictBadge({ trustLevel, simulated = false, count }: MachineVerdictBadgeProps) {
  const anchor = useTrustAnchor();
  if (anchor === undefined) return <Skeleton width="13rem" height="1.4rem" />;
  return <VerdictBadge verdict={machineVerdict(trustLevel, anchor, simulated)} {...(count === undefined ? {} : { count })} />;
}
