/** `/usage/:id`: a completed request of the account, with its receipt if stored, or a failed one. */
import './client.css';
import type { ConsoleRequest } from '@inference/formats';
import { useQuery } from '@tanstack/react-query';
import { BadgeCheck, Download } from 'lucide-react';
import type { ReactNode } from 'react';
import { Link, useParams } from 'wouter';
import { api } from '../../api/api-client.js';
import { ApiError } from '../../api/api-error.js';
import { LoadedPage } from '../../api/loaded-page.js';
import { BILLING_QUERY_KEY } from '../../features/account/balance.js';
import { PATHS, pathWithId } from '../../routing/paths.js';
import { Count, formatDuration, Money, Time } from '../../ui/display/figures.js';
import { Badge, Card, Fact, Facts, PageHeader } from '../../ui/display/page.js';
import { downloadText } from '../../ui/download.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { FINISH_REASONS, isEndToEnd, type SignedReceipt } from './request-receipt.js';

type CompletedRequest = Extract<ConsoleRequest, { state: 'completed' }>;
type FailedRequest = Extract<ConsoleRequest, { state: 'failed' }>;

export function Page() {
  const { id = '' } = useParams();
  const request = useQuery({
    queryKey: [...BILLING_QUERY_KEY, 'usage-request', id],
    queryFn: ({ signal }) => api.get<ConsoleRequest>(`/console/v1/usage/requests/${encodeURIComponent(id)}`, { signal }),
  });
  const notFound = (
    <EmptyState level={1} title="Request not found" action={<LinkButton href={PATHS.usage}>Your requests</LinkButton>}>
      This account has no finished request with this ID. Old requests may have been removed.
    </EmptyState>
  );
  return (
    <LoadedPage
      query={request}
      subject="The request"
      notFound={notFound}
      page={(data) => (data.state === 'completed' ? <Completed request={data} /> : <Failed request={data} />)}
    />
  );
}

function Completed({ request }: { readonly request: CompletedRequest }) {
  const receipt = useQuery({ queryKey: ['receipt', request.request_id], queryFn: ({ signal }) => findReceipt(request.request_id, signal) });
  const claims = receipt.data?.claims;
  // Undefined: `Fact` shows a placeholder.
  const unknown = receipt.isPending ? undefined : 'unknown';
  return (
    <>
      <Header badge={<Badge tone="good">Completed</Badge>} at={request.completed_at} />
      <div className="stack">
        <div className="columns">
          <RequestCard request={request}>
            <Fact label="Mode">{claims === undefined ? unknown : isEndToEnd(claims) ? 'End-to-end' : 'Plain'}</Fact>
            <Fact label="Finish reason">{claims === undefined ? unknown : FINISH_REASONS[claims.finish_reason]}</Fact>
          </RequestCard>
          <Card title="Usage and cost">
            <Facts>
              <Fact label="Input tokens">
                <Count value={request.prompt_tokens} />
              </Fact>
              <Fact label="Cached input tokens">
                <Count value={request.cached_tokens} />
              </Fact>
              <Fact label="Output tokens">
                <Count value={request.completion_tokens} />
              </Fact>
              {request.hidden_tokens === 0 ? null : (
                <Fact label="Reasoning tokens in the output">
                  <Count value={request.hidden_tokens} />
                </Fact>
              )}
              {request.images === 0 ? null : (
                <Fact label="Images">
                  <Count value={request.images} />
                </Fact>
              )}
              <Fact label="Cost">
                <Money microUsd={request.cost_micro_usd} />
              </Fact>
            </Facts>
          </Card>
        </div>
        <ReceiptCard receipt={receipt} />
      </div>
    </>
  );
}

function Failed({ request }: { readonly request: FailedRequest }) {
  const { code, status, message } = request.error;
  return (
    <>
      <Header badge={<Badge tone="bad">Failed</Badge>} at={request.failed_at} />
      <div className="stack">
        <Note tone="bad" title={`${status} ${code}`}>
          <p>{message}</p>
          <p>The request cost nothing. Only the code of an error is stored, so the error that your client received may say more.</p>
        </Note>
        <RequestCard request={request}>
          <Fact label="Mode">{request.end_to_end ? 'End-to-end' : 'Plain'}</Fact>
        </RequestCard>
      </div>
    </>
  );
}

function Header({ badge, at }: { readonly badge: ReactNode; readonly at: string }) {
  return (
    <PageHeader
      title="Request"
      about={
        <span className="row">
          {badge}
          <Time at={at} as="exact" />
        </span>
      }
      actions={
        <LinkButton href={PATHS.usage} kind="secondary">
          All requests
        </LinkButton>
      }
    />
  );
}

/** Facts about a completed or failed request. `children`: further facts. */
function RequestCard({ request, children }: { readonly request: ConsoleRequest; readonly children: ReactNode }) {
  return (
    <Card title="The request">
      <Facts>
        <Fact label="Request ID">
          <code className="usage-id">{request.request_id}</code>
        </Fact>
        <Fact label="Model">{request.model ?? 'not on this network'}</Fact>
        <Fact label="Endpoint">
          <code className="usage-id">{request.endpoint}</code>
        </Fact>
        <Fact label="API key">{request.key.name ?? 'unknown'}</Fact>
        <Fact label="Machine">
          {request.provider_id === null ? (
            'none'
          ) : (
            <Link href={pathWithId(PATHS.provider, request.provider_id)}>
              <code className="usage-id">{request.provider_id}</code>
            </Link>
          )}
        </Fact>
        <Fact label="Latency">{formatDuration(request.latency_ms)}</Fact>
        {children}
      </Facts>
    </Card>
  );
}

/** Null: no receipt is stored. */
async function findReceipt(id: string, signal: AbortSignal): Promise<SignedReceipt | null> {
  try {
    return await api.get<SignedReceipt>(`/v1/receipts/${encodeURIComponent(id)}`, { signal });
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

interface ReceiptCardProps {
  /** `data` null: no receipt is stored. */
  readonly receipt: { readonly data: SignedReceipt | null | undefined; readonly error: unknown; readonly refetch: () => unknown };
}

function ReceiptCard({ receipt }: ReceiptCardProps) {
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
