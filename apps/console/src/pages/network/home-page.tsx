/** `/`: introduction for visitors, with model prices and a live verification. Redirects signed-in users to `/network`. */
import './home-page.css';
import { Link, Redirect } from 'wouter';
import { useSession } from '../../api/session.js';
import { MEASUREMENT_COLUMNS, PRICE_COLUMNS } from '../../features/models/model-columns.js';
import { useServedModels } from '../../features/models/served-models.js';
import { PATHS, PROVIDER_GUIDE } from '../../routing/paths.js';
import { Card } from '../../ui/display/page.js';
import { Table } from '../../ui/display/table.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { EmptyState, PageSkeleton } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { LiveVerification } from './live-verification.js';

export function Page() {
  const session = useSession();
  if (session.state === 'loading') return <PageSkeleton />;
  if (session.state === 'signed-in') return <Redirect to={PATHS.network} replace />;
  return (
    <>
      <section className="hero">
        <h1 tabIndex={-1}>AI models on people's Macs, with responses that you can verify</h1>
        <p className="hero-about">
          Mac owners serve open models here. You use them through the OpenAI or Anthropic API, pay per token, and check the signature of the
          machine that responded.
        </p>
        <div className="row">
          <LinkButton href={PATHS.signUp}>Get an API key</LinkButton>
          <LinkButton href={PROVIDER_GUIDE} kind="secondary">
            Earn with your Mac
          </LinkButton>
        </div>
      </section>
      <div className="stack">
        <Prices />
        <LiveVerification />
        <Card title="How it works">
          <ol className="plan">
            {STEPS.map(({ title, text }) => (
              <li key={title}>
                <h3>{title}</h3>
                <p className="muted">{text}</p>
              </li>
            ))}
          </ol>
          <p className="muted">
            Who sees a request depends on its mode: <Link href={PATHS.modes}>plain or end-to-end</Link>.
          </p>
        </Card>
      </div>
    </>
  );
}

const STEPS = [
  {
    title: 'Change two settings',
    text: 'Any OpenAI or Anthropic client works with the base URL of this network and your key.',
  },
  {
    title: 'A Mac responds',
    text: 'The request goes to a machine that serves the model and signs its response with a key of its own.',
  },
  {
    title: 'Verify it',
    text: 'Signature, receipt and attestation record are yours to check, in the playground or with the open-source verifier.',
  },
] as const;

/** Maximum models on this page. `/models` has all. */
const MAX_MODELS = 6;
const SPEED = MEASUREMENT_COLUMNS.filter(({ key }) => key === 'speed');
const COLUMNS = [...PRICE_COLUMNS, ...SPEED];

function Prices() {
  const servedModels = useServedModels();
  const rows = servedModels.data
    ?.toSorted((one, other) => other.metadata.provider_count - one.metadata.provider_count)
    .slice(0, MAX_MODELS);
  return (
    <Card
      title="Models and prices"
      about="Available now, in USD. Tokens per second are the measured median of the last 24 hours."
      actions={
        <LinkButton href={PATHS.models} kind="secondary" size="small">
          All models
        </LinkButton>
      }
      flush
    >
      <Loaded query={servedModels} subject="The models">
        <Table
          caption="Prices of models"
          columns={COLUMNS}
          rows={rows}
          rowKey={({ id }) => id}
          stacked
          loadingRows={2}
          empty={<EmptyState title="No models available">Models appear here when a machine serves them.</EmptyState>}
        />
      </Loaded>
    </Card>
  );
}
