/** What stands under an answer: who gave it, how far it is trusted, what it took and cost, and the mark of its check. */
import { Link } from 'wouter';
import { Badge } from '../../ui/badge.js';
import { Money } from '../../ui/money.js';
import { formatCount } from '../../ui/number.js';
import { PATHS } from '../paths.js';
import type { AnswerCheck } from './answer-check.js';
import { CheckMark } from './check-mark.js';
import type { TokenUsage } from './conversation.js';
import type { ProviderFacts } from './provider-facts.js';

export interface AnswerFooterProps {
  readonly provider: ProviderFacts | null;
  readonly usage: TokenUsage | null;
  readonly finishReason: string | null;
  readonly costMicroUsd: number | null;
  readonly check: AnswerCheck;
}

const SHORT_ID = 8;

export function AnswerFooter({ provider, usage, finishReason, costMicroUsd, check }: AnswerFooterProps) {
  return (
    <div className="answer-footer">
      <CheckMark check={check} provider={provider} />
      {provider === null ? null : (
        <>
          <Link href={PATHS.provider.replace(':id', encodeURIComponent(provider.id))} className="answer-machine" title={provider.id}>
            {provider.chip} <code>{provider.id.slice(0, SHORT_ID)}</code>
          </Link>
          <Badge tone={check.state === 'verified' && check.enclave === 'certified' ? 'good' : 'neutral'}>
            {provider.trustLevel === 'hardware' ? 'Hardware trust' : 'Self-signed'}
          </Badge>
        </>
      )}
      {usage === null ? null : (
        <span title="Tokens of input and output">{`${formatCount(usage.prompt)} → ${formatCount(usage.completion)} tokens`}</span>
      )}
      {costMicroUsd === null ? null : <Money microUsd={costMicroUsd} />}
      {finishReason === 'length' ? <Badge tone="warn">Cut at the most tokens</Badge> : null}
    </div>
  );
}
