/** `VerdictBadge` shows a verdict on a machine or an answer; `MachineVerdictBadge`, the verdict that the coordinator reports on a machine. */
import './trust.css';
import type { AttestationFeed } from '@inference/protocol';
import { useQuery } from '@tanstack/react-query';
import { CircleHelp, type LucideIcon, PenLine, ShieldAlert, ShieldCheck } from 'lucide-react';
import { api } from '../../api/api-client.js';
import { formatCount } from '../../ui/display/figures.js';
import { Skeleton } from '../../ui/feedback/placeholders.js';
import { type AnchorKind, machineVerdict, VERDICTS, type Verdict } from './verdicts.js';

const ICONS: Readonly<Record<Verdict, LucideIcon>> = {
  hardware: ShieldCheck,
  simulated: ShieldCheck,
  claimed: ShieldCheck,
  self_signed: PenLine,
  hardware_unconfirmed: CircleHelp,
  untrusted: ShieldAlert,
  failed: ShieldAlert,
  unverified: CircleHelp,
};

interface VerdictBadgeProps {
  readonly verdict: Verdict;
  /** Number of machines with this verdict. Absent: the verdict is on one machine or answer. */
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
  /** Whether the machine's enclave is simulated. Absent: unknown. */
  readonly simulated?: boolean;
}

/** Shows a placeholder until the root of this network's certificates is known. */
export function MachineVerdictBadge({ trustLevel, simulated = false, count }: MachineVerdictBadgeProps) {
  const anchor = useTrustAnchor();
  if (anchor === undefined) return <Skeleton width="13rem" height="1.4rem" />;
  return <VerdictBadge verdict={machineVerdict(trustLevel, anchor, simulated)} {...(count === undefined ? {} : { count })} />;
}

/** No provider has this id, so the response contains the anchor without any records. */
const NO_PROVIDER = '0'.repeat(32);

/** Root of this network's certificates. Undefined: loading. */
function useTrustAnchor(): AnchorKind | undefined {
  const { data, isError } = useQuery({
    queryKey: ['public', 'trust-anchor'],
    queryFn: ({ signal }) => api.get<AttestationFeed>('/v1/providers/attestation', { query: { provider_id: NO_PROVIDER }, signal }),
    select: ({ trust_anchor }): AnchorKind => (trust_anchor.simulated ? 'simulated' : 'apple'),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data ?? (isError ? 'unknown' : undefined);
}
