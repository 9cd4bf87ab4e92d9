/** Footer of a response: verification result, provider, usage and cost. */
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { formatCount, Money } from '../../ui/display/figures.js';
import { Badge } from '../../ui/display/page.js';
import type { TokenUsage } from './chat/conversation.js';
import type { ProviderFacts } from './requests/provider-facts.js';
import type { AnswerCheck } from './verification/check-answer.js';
import { CheckMark } from './verification/check-mark.js';

interface AnswerFooterProps {
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
        <Link href={pathWithId(PATHS.provider, provider.id)} className="answer-machine" title={provider.id}>
          {provider.chip} <code>{provider.id.slice(0, SHORT_ID)}</code>
        </Link>
      )}
      {usage === null ? null : (
        <span title="Input and output tokens">{`${formatCount(usage.prompt)} → ${formatCount(usage.completion)} tokens`}</span>
      )}
      {costMicroUsd === null ? null : <Money microUsd={costMicroUsd} />}
      {finishReason === 'length' ? <Badge tone="warn">Cut at max tokens</Badge> : null}
    </div>
  );
}
