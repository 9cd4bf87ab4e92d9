/** Try the models of the network, and see each answer checked in the browser. */
import './playground.css';
import { useState } from 'react';
import { useMe } from '../../app/session.js';
import { ErrorState } from '../../ui/error-state.js';
import { Money } from '../../ui/money.js';
import { PageHeader } from '../../ui/page-header.js';
import { Segmented } from '../../ui/segmented.js';
import { Skeleton } from '../../ui/skeleton.js';
import { useBalance } from '../client/balance-query.js';
import { FirstSteps, useFirstSteps } from '../client/first-steps-panel.js';
import { useModels } from '../client/models.js';
import { ChatView } from './chat-view.js';
import { ImagesView } from './images-view.js';

type Mode = 'chat' | 'images';

export function Page() {
  useMe();
  const { data: models, error, refetch } = useModels();
  const { data: balance } = useBalance();
  const steps = useFirstSteps();
  const [mode, setMode] = useState<Mode>('chat');
  return (
    <>
      <PageHeader
        title="Playground"
        about={
          balance === undefined ? (
            'Balance: …'
          ) : (
            <>
              Balance: <Money microUsd={balance.balance_micro_usd} />
            </>
          )
        }
        actions={
          <Segmented<Mode>
            label="Kind"
            value={mode}
            options={[
              { value: 'chat', label: 'Chat' },
              { value: 'images', label: 'Images' },
            ]}
            onValue={setMode}
          />
        }
      />
      <div className="stack">
        {error !== null && models === undefined ? (
          <ErrorState error={error} what="The models" onRetry={() => void refetch()} />
        ) : models === undefined || steps === undefined ? (
          <Skeleton height="24rem" />
        ) : (
          <>
            {steps !== null && balance !== undefined && balance.balance_micro_usd <= 0 ? <FirstSteps steps={steps} /> : null}
            {mode === 'chat' ? <ChatView models={models} /> : <ImagesView models={models} />}
          </>
        )}
      </div>
    </>
  );
}
