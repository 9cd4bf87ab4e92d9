/** `AnswerFooter`: line below a response with verification result, provider, usage, cost and speed. */
import { Link } from 'wouter';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { formatCount, formatDuration, formatRate, Money } from '../../ui/display/figures.js';
import { Badge } from '../../ui/display/page.js';
import type { Timing, TokenUsage } from './chat/conversation.js';
import type { ProviderFacts } from './requests/provider-facts.js';
import type { AnswerCheck } from './verification/check-answer.js';
import { CheckMark } from './verification/check-mark.js';

interface AnswerFooterProps {
  readonly provider: ProviderFacts | null;
  readonly usage: TokenUsage | null;
  readonly finishReason: string | null;
  readonly costMicroUsd: number | null;
  readonly timing?: Timing | null;
  readonly check: AnswerCheck;
}

const SHORT_ID = 8;

export function AnswerFooter({ provider, usage, finishReason, costMicroUsd, timing = null, check }: AnswerFooterProps) {
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
      {timing === null ? null : <Speed timing={timing} usage={usage} />}
      {finishReason === 'length' ? <Badge tone="warn">Cut at max tokens</Badge> : null}
    </div>
  );
}

function Speed({ timing: { firstTextMs, totalMs }, usage }: { readonly timing: Timing; readonly usage: TokenUsage | null }) {
  return (
    <>
      {firstTextMs === null ? null : (
        <span title="Time to the first text, queue time included">{`First text ${formatDuration(firstTextMs)}`}</span>
      )}
      {usage === null || totalMs <= 0 ? null : (
        <span title={`Output tokens over the whole request, ${formatDuration(totalMs)}, queue time included`}>
          {`${formatRate(usage.completion / (totalMs / 1000))} tokens/s`}
        </span>
      )}
    </>
  );
}
