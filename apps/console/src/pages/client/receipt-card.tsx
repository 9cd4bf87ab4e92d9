/** `ReceiptCard`: signed receipt of a request, with download and a link to its verification. */
import { BadgeCheck, Download } from 'lucide-react';
import { PATHS } from '../../routing/paths.js';
import { formatDuration } from '../../ui/display/figures.js';
import { Card, Fact, Facts } from '../../ui/display/page.js';
import { downloadText } from '../../ui/download.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import type { SignedReceipt } from './request-receipt.js';

interface ReceiptCardProps {
  /** `data` null: no receipt is stored. */
  readonly receipt: { readonly data: SignedReceipt | null | undefined; readonly error: unknown; readonly refetch: () => unknown };
}

export function ReceiptCard({ receipt }: ReceiptCardProps) {
  const { data } = receipt;
  return (
    <Card
      title="Receipt"
      about={
        data === null
          ? 'No receipt of this request is stored. Receipts are stored for the newest requests of the network.'
          : 'Signed by the machine: the hashes of request and response, the usage and the times.'
      }
      actions={
        data ? (
          <>
            <Button
              icon={<Download size={16} aria-hidden="true" />}
              onClick={() => downloadText(`receipt-${data.job_id}.json`, JSON.stringify(data, null, 2), 'application/json')}
            >
              Download
            </Button>
            <LinkButton
              href={`${PATHS.verify}?receipt=${encodeURIComponent(data.job_id)}`}
              icon={<BadgeCheck size={16} aria-hidden="true" />}
            >
              Verify
            </LinkButton>
          </>
        ) : undefined
      }
    >
      <Loaded query={receipt} subject="The receipt">
        {data === null ? null : (
          <Facts>
            <Fact label="Response hash (SHA-256)">{data && <code className="usage-id">{data.response_hash}</code>}</Fact>
            <Fact label="Time on the machine">{data && formatDuration(data.claims.completed_at - data.claims.started_at)}</Fact>
            <Fact label="Engine">{data && (data.claims.engine ?? 'not stated')}</Fact>
          </Facts>
        )}
      </Loaded>
    </Card>
  );
}
