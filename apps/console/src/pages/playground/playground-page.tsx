/** `/playground`: chat and images with the models of the network, each response verified in the browser. */
import './playground.css';
import { Link } from 'wouter';
import { useBalance } from '../../features/account/balance.js';
import { FirstSteps, useFirstSteps } from '../../features/account/first-steps-panel.js';
import { useModels } from '../../features/account/models.js';
import { PATHS } from '../../routing/paths.js';
import { Money } from '../../ui/display/figures.js';
import { PageHeader } from '../../ui/display/page.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { Note } from '../../ui/feedback/note.js';
import { Skeleton } from '../../ui/feedback/placeholders.js';
import { Segmented } from '../../ui/forms/field.js';
import { useUrlChoice } from '../../ui/navigation/url-state.js';
import { ChatView } from './chat/chat-view.js';
import { ImagesView } from './images/images-view.js';

const MODES = ['chat', 'images'] as const;
type Mode = (typeof MODES)[number];

export function Page() {
  const models = useModels();
  const { data: balance } = useBalance();
  const steps = useFirstSteps();
  const [mode, setMode] = useUrlChoice<Mode>('mode', MODES);
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
        <Loaded query={models} subject="The models">
          {models.data === undefined || steps === undefined ? (
            <Skeleton height="24rem" />
          ) : (
            <>
              {steps !== null && balance !== undefined && balance.balance_micro_usd <= 0 ? <FirstSteps steps={steps} /> : null}
              <PlainModeNote />
              {mode === 'chat' ? <ChatView models={models.data} /> : <ImagesView models={models.data} />}
            </>
          )}
        </Loaded>
      </div>
    </>
  );
}

function PlainModeNote() {
  return (
    <Note title="The coordinator sees what you send here">
      The playground uses plain mode. The coordinator delivers the code of this page, so the page cannot promise end-to-end encryption. A
      program that you install yourself can: <Link href={PATHS.modes}>plain and end-to-end mode</Link>.
    </Note>
  );
}
