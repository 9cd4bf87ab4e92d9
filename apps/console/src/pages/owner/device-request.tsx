/** `DeviceRequest`: shows the machine that requested a user code. The owner approves or denies the link to the account. */
import type { ConsoleDeviceCode } from '@inference/formats';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { CircleCheck, CircleSlash, ClockAlert, SearchX } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { ApiError } from '../../api/api-error.js';
import { PATHS } from '../../routing/paths.js';
import { Time } from '../../ui/display/figures.js';
import { Card, Fact, Facts } from '../../ui/display/page.js';
import { ErrorNote, ErrorState } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { EmptyState, Skeleton } from '../../ui/feedback/placeholders.js';
import { Button, LinkButton } from '../../ui/forms/button.js';
import { deviceCodePath, MACHINES_KEY, useDeviceCode } from './queries.js';

interface DeviceRequestProps {
  readonly code: string;
  readonly onAnother: () => void;
}

export function DeviceRequest({ code, onAnother }: DeviceRequestProps) {
  const { data, error, refetch } = useDeviceCode(code);
  const [decided, setDecided] = useState<ConsoleDeviceCode | null>(null);
  const another = <Button onClick={onAnother}>Enter another code</Button>;
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Card>
        <EmptyState icon={SearchX} title={`The code ${code} is not known`} action={another}>
          Compare it with the code on the machine. A code is valid for ten minutes and one machine; run “inference-provider login” again for
          a new one.
        </EmptyState>
      </Card>
    );
  }
  const request = decided ?? data;
  if (request === undefined) {
    if (error !== null) return <ErrorState subject="The code" error={error} onRetry={() => void refetch()} />;
    return (
      <Card title="Looking up the code">
        <Skeleton height="9rem" />
      </Card>
    );
  }
  switch (request.state) {
    case 'waiting':
      return <Decision request={request} onDecided={setDecided} onAnother={onAnother} />;
    case 'approved':
      return (
        <Card>
          <EmptyState
            icon={CircleCheck}
            title={decided === null ? 'This code was approved before' : `${request.machine_name} is approved`}
            action={<LinkButton href={PATHS.machines}>View machines</LinkButton>}
          >
            {decided === null
              ? 'A code links one machine, once. If you did not approve it, unlink the machine under Machines.'
              : 'It appears among your machines within a few seconds. Return to the terminal on the Mac, where setup may have more questions.'}
          </EmptyState>
        </Card>
      );
    case 'denied':
      return (
        <Card>
          <EmptyState icon={CircleSlash} title={decided === null ? 'This code was denied before' : 'Denied'} action={another}>
            {decided === null
              ? 'The code is no longer valid. Run “inference-provider login” on the machine again for a new one.'
              : 'The machine was not linked, and the code is no longer valid.'}
          </EmptyState>
        </Card>
      );
    case 'expired':
      return (
        <Card>
          <EmptyState icon={ClockAlert} title="This code has expired" action={another}>
            Codes expire after ten minutes. Run “inference-provider login” on the machine again for a new one.
          </EmptyState>
        </Card>
      );
    default:
      return request.state satisfies never;
  }
}

interface DecisionProps {
  readonly request: ConsoleDeviceCode;
  readonly onDecided: (request: ConsoleDeviceCode) => void;
  readonly onAnother: () => void;
}

function Decision({ request, onDecided, onAnother }: DecisionProps) {
  const queryClient = useQueryClient();
  const {
    mutate: decide,
    isPending,
    variables,
    error,
  } = useMutation({
    mutationFn: async (decision: 'approve' | 'deny') => {
      onDecided(await api.post<ConsoleDeviceCode>(`${deviceCodePath(request.user_code)}/${decision}`));
      await queryClient.invalidateQueries({ queryKey: MACHINES_KEY });
    },
    // Another session may have decided meanwhile, or the code has expired.
    onError: () => queryClient.invalidateQueries({ queryKey: ['device-code', request.user_code] }),
  });
  const pending = isPending ? variables : null;
  return (
    <Card title={`Link “${request.machine_name}” to your account?`}>
      <div className="stack">
        <Facts>
          <Fact label="Code">
            <code className="user-code">{request.user_code}</code>
          </Fact>
          <Fact label="Machine">{request.machine_name}</Fact>
          {request.chip_name === null ? null : <Fact label="Chip">{request.chip_name}</Fact>}
          <Fact label="Requested from">{request.address ?? 'an unknown address'}</Fact>
          <Fact label="Requested">
            <Time at={request.requested_at} />
          </Fact>
          <Fact label="Expires">
            <Time at={request.expires_at} />
          </Fact>
        </Facts>
        <Note tone="warn" title="Approve only if you just ran the command yourself">
          Compare the code with the one on the machine. Name and chip are reported by the machine. If someone sent you this code or link,
          deny it.
        </Note>
        <ErrorNote error={error} title="No decision was recorded." />
        <div className="row">
          <Button kind="primary" busy={pending === 'approve'} disabled={pending === 'deny'} onClick={() => decide('approve')}>
            Approve
          </Button>
          <Button busy={pending === 'deny'} disabled={pending === 'approve'} onClick={() => decide('deny')}>
            Deny
          </Button>
          <Button kind="quiet" disabled={isPending} onClick={onAnother}>
            Enter another code
          </Button>
        </div>
      </div>
    </Card>
  );
}
