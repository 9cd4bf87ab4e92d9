/** What asks to be linked with a code, and the decision about it. */
import type { ConsoleDeviceCode } from '@inference/formats';
import { useQueryClient } from '@tanstack/react-query';
import { CircleCheck, CircleSlash, ClockAlert, SearchX } from 'lucide-react';
import { useState } from 'react';
import { api } from '../../api/api-client.js';
import { ApiError } from '../../api/api-error.js';
import { PATHS } from '../../routing/paths.js';
import { Card } from '../../ui/display/card.js';
import { Time } from '../../ui/display/time.js';
import { EmptyState } from '../../ui/feedback/empty-state.js';
import { ErrorNote, ErrorState } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { Skeleton } from '../../ui/feedback/skeleton.js';
import { Button } from '../../ui/forms/button.js';
import { LinkButton } from '../../ui/navigation/link-button.js';
import { deviceCodePath, MACHINES, useDeviceCode } from './queries.js';

export interface DeviceRequestProps {
  readonly code: string;
  /** Type another code. */
  readonly onAnother: () => void;
}

export function DeviceRequest({ code, onAnother }: DeviceRequestProps) {
  const { data, error, refetch } = useDeviceCode(code);
  const [decided, setDecided] = useState<ConsoleDeviceCode | null>(null);
  const another = <Button onClick={onAnother}>Type another code</Button>;
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Card>
        <EmptyState icon={SearchX} title={`The code ${code} is not known`} action={another}>
          Compare it with what the machine shows. A code is good for ten minutes and for one machine; run “inference-provider login” again
          for a new one.
        </EmptyState>
      </Card>
    );
  }
  const shown = decided ?? data;
  if (shown === undefined) {
    if (error !== null) return <ErrorState what="The code" error={error} onRetry={() => void refetch()} />;
    return (
      <Card title="Looking for the machine">
        <Skeleton height="9rem" />
      </Card>
    );
  }
  switch (shown.state) {
    case 'waiting':
      return <Decision request={shown} onDecided={setDecided} onAnother={onAnother} />;
    case 'approved':
      return (
        <Card>
          <EmptyState
            icon={CircleCheck}
            title={decided === null ? 'This code was approved before' : `${shown.machine_name} is approved`}
            action={<LinkButton href={PATHS.machines}>Go to the machines</LinkButton>}
          >
            {decided === null
              ? 'A code links one machine, once. If that was not you, unlink the machine under Machines.'
              : 'It will be among your machines as soon as it has connected, within a few seconds. You can close the window on the Mac.'}
          </EmptyState>
        </Card>
      );
    case 'denied':
      return (
        <Card>
          <EmptyState icon={CircleSlash} title={decided === null ? 'This code was denied before' : 'Denied'} action={another}>
            {decided === null
              ? 'It is good for nothing any more. Run “inference-provider login” on the machine again for a new one.'
              : 'The machine gets nothing, and the code is good for nothing any more.'}
          </EmptyState>
        </Card>
      );
    case 'expired':
      return (
        <Card>
          <EmptyState icon={ClockAlert} title="This code has expired" action={another}>
            Codes are good for ten minutes. Run “inference-provider login” on the machine again for a new one.
          </EmptyState>
        </Card>
      );
    default:
      return shown.state satisfies never;
  }
}

interface DecisionProps {
  readonly request: ConsoleDeviceCode;
  readonly onDecided: (request: ConsoleDeviceCode) => void;
  readonly onAnother: () => void;
}

function Decision({ request, onDecided, onAnother }: DecisionProps) {
  const queryClient = useQueryClient();
  const [busy, setBusy] = useState<'approve' | 'deny' | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const decide = async (decision: 'approve' | 'deny'): Promise<void> => {
    setBusy(decision);
    setProblem(null);
    try {
      onDecided(await api.post<ConsoleDeviceCode>(`${deviceCodePath(request.user_code)}/${decision}`));
      await queryClient.invalidateQueries({ queryKey: MACHINES });
    } catch (error) {
      setProblem(error);
      // Somebody else may have decided meanwhile, or it has expired.
      await queryClient.invalidateQueries({ queryKey: ['device-code', request.user_code] });
    } finally {
      setBusy(null);
    }
  };
  return (
    <Card title={`Link “${request.machine_name}” to your account?`}>
      <div className="stack">
        <dl className="facts">
          <dt>Code</dt>
          <dd>
            <code className="user-code">{request.user_code}</code>
          </dd>
          <dt>Machine</dt>
          <dd>{request.machine_name}</dd>
          {request.chip_name === null ? null : (
            <>
              <dt>Chip</dt>
              <dd>{request.chip_name}</dd>
            </>
          )}
          <dt>Asked from</dt>
          <dd>{request.address ?? 'an unknown address'}</dd>
          <dt>Asked</dt>
          <dd>
            <Time at={request.requested_at} />
          </dd>
          <dt>Expires</dt>
          <dd>
            <Time at={request.expires_at} />
          </dd>
        </dl>
        <Note tone="warn" title="Approve it only if you ran the command yourself, just now">
          Compare the code with the one on the machine. Name and chip are what the machine says of itself. If somebody sent you this code or
          link, deny it.
        </Note>
        {problem === null ? null : <ErrorNote error={problem} title="Nothing was decided." />}
        <div className="row">
          <Button kind="primary" busy={busy === 'approve'} disabled={busy === 'deny'} onClick={() => void decide('approve')}>
            Approve
          </Button>
          <Button busy={busy === 'deny'} disabled={busy === 'approve'} onClick={() => void decide('deny')}>
            Deny
          </Button>
          <Button kind="quiet" disabled={busy !== null} onClick={onAnother}>
            Type another code
          </Button>
        </div>
      </div>
    </Card>
  );
}
