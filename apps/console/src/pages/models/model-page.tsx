/** `/models/:id`: one model with prices, measurements, uptime, machines, features, and a first request to copy. */
import './models-page.css';
import type { Percentiles, Uptime } from '@inference/formats';
import { Check, Minus } from 'lucide-react';
import { useParams } from 'wouter';
import { LoadedPage } from '../../api/loaded-page.js';
import { useSession } from '../../api/session.js';
import { formatContext, formatLatency, formatUptime } from '../../features/models/model-figures.js';
import { pricesOf, type ServedModel, TYPE_LABELS, useServedModels } from '../../features/models/served-models.js';
import { decodePart } from '../../routing/decode-part.js';
import { PATHS } from '../../routing/paths.js';
import { formatCount, formatRate, formatUsd, pluralize } from '../../ui/display/figures.js';
import { Badge, Card, Fact, Facts, PageHeader, Stat, Stats } from '../../ui/display/page.js';
import { EmptyState } from '../../ui/feedback/placeholders.js';
import { LinkButton } from '../../ui/forms/button.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { Tabs } from '../../ui/navigation/tabs.js';
import { featuresOf } from './model-features.js';
import { modelSnippets } from './model-snippets.js';

export function Page() {
  const id = decodePart(useParams().id ?? '');
  const notServed = (
    <EmptyState title="This model is not available now" level={1} action={<LinkButton href={PATHS.models}>View models</LinkButton>}>
      No machine serves “{id}” at the moment. Models come and go with the machines of the network.
    </EmptyState>
  );
  const page = (models: readonly ServedModel[]) => {
    const model = models.find((one) => one.id === id);
    return model === undefined ? notServed : <Model model={model} />;
  };
  return <LoadedPage query={useServedModels()} subject="This model" notFound={notServed} page={page} />;
}

function Model({ model }: { readonly model: ServedModel }) {
  const { id, name, metadata } = model;
  const isSignedIn = useSession().state === 'signed-in';
  return (
    <>
      <PageHeader
        title={name}
        about={
          <span className="row">
            <Badge>{TYPE_LABELS[metadata.model_type]}</Badge>
            <span>{metadata.quantization}</span>
          </span>
        }
        actions={
          isSignedIn ? <LinkButton href={PATHS.keys}>Create a key</LinkButton> : <LinkButton href={PATHS.signUp}>Get an API key</LinkButton>
        }
      />
      <div className="stack">
        <Measurements model={model} />
        <div className="columns">
          <div className="stack">
            <Card title="Price and limits">
              <PriceFacts model={model} />
            </Card>
            <Card title="Machines by trust level">
              <Machines model={model} />
            </Card>
          </div>
          <Card title="Features">
            <Features model={model} />
          </Card>
        </div>
        <Card title="Uptime, 30 days" about="Share of the checks per day, one each minute, at which a machine served the model.">
          {model.statistics.uptime === null ? (
            <p className="muted">Not checked yet. The first check follows within a minute.</p>
          ) : (
            <UptimeDays uptime={model.statistics.uptime} />
          )}
        </Card>
        <Card title="First request" about="Works with any OpenAI client: change its base URL and API key.">
          <div className="stack-small">
            <CopyField label="Model ID" value={id} />
            <Tabs
              label="Languages"
              tabs={modelSnippets(model, window.location.origin).map(({ id, title, code }) => ({
                value: id,
                label: title,
                content: <CopyField label={title} hideLabel value={code} multiline />,
              }))}
            />
          </div>
        </Card>
      </div>
    </>
  );
}

const NOT_MEASURED = '–';
const NO_REQUESTS = 'no requests in 24 hours';

function Measurements({ model: { metadata, statistics } }: { readonly model: ServedModel }) {
  const { first_token_ms, tokens_per_second, duration_ms, uptime } = statistics;
  return (
    <Stats>
      {metadata.model_type === 'text' ? (
        <>
          <DurationStat label="First token, median" measured={first_token_ms} />
          <Stat
            label="Tokens per second, median"
            value={tokens_per_second === null ? NOT_MEASURED : formatRate(tokens_per_second.p50)}
            hint={tokens_per_second === null ? NO_REQUESTS : `5% of requests below ${formatRate(tokens_per_second.p5)}`}
          />
        </>
      ) : (
        <DurationStat label="Response time, median" measured={duration_ms} />
      )}
      <Stat
        label="Uptime, 30 days"
        value={uptime === null ? NOT_MEASURED : formatUptime(uptime.share)}
        hint={uptime === null ? 'not checked yet' : pluralize(uptime.checks, 'check')}
      />
      <Stat
        label="Machines"
        value={formatCount(metadata.provider_count)}
        hint={
          metadata.hardware_providers === undefined ? 'serving now' : `${formatCount(metadata.hardware_providers)} with attested hardware`
        }
      />
    </Stats>
  );
}

function DurationStat({ label, measured }: { readonly label: string; readonly measured: Percentiles | null }) {
  const hint = measured === null ? NO_REQUESTS : `95% within ${formatLatency(measured.p95)}, ${pluralize(measured.requests, 'request')}`;
  return <Stat label={label} value={measured === null ? NOT_MEASURED : formatLatency(measured.p50)} hint={hint} />;
}

function PriceFacts({ model }: { readonly model: ServedModel }) {
  const { input, cachedInput, output, image } = pricesOf(model);
  const { context_length, metadata } = model;
  const { max_image_tokens: imageTokens } = metadata;
  const perMillion = (microUsd: number): string => `${formatUsd(microUsd)} per million tokens`;
  return (
    <Facts>
      {input === null ? null : <Fact label="Input">{perMillion(input)}</Fact>}
      {cachedInput === null ? null : <Fact label="Cached input">{perMillion(cachedInput)}</Fact>}
      {output === null ? null : <Fact label="Output">{perMillion(output)}</Fact>}
      {imageTokens === undefined ? null : (
        <Fact label="Input images">{`billed as input tokens, up to ${formatCount(imageTokens)} tokens per image`}</Fact>
      )}
      {image === null ? null : <Fact label="Image">{`${formatUsd(image)} per 1024×1024 image; other sizes by pixels`}</Fact>}
      {context_length === undefined ? null : (
        <Fact label="Context">
          {context_length === null ? 'unknown' : `${formatContext(context_length)} tokens, input and output together`}
        </Fact>
      )}
    </Facts>
  );
}

function Features({ model }: { readonly model: ServedModel }) {
  return (
    <ul className="feature-list">
      {featuresOf(model).map(({ label, supported }) => (
        <li key={label} data-supported={supported}>
          {supported ? <Check size={18} aria-hidden="true" /> : <Minus size={18} aria-hidden="true" />}
          <span>
            {label}
            {supported ? null : <span className="visually-hidden"> (not supported)</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Machines({ model: { metadata } }: { readonly model: ServedModel }) {
  const { provider_count, hardware_providers } = metadata;
  return (
    <div className="stack-small">
      <Facts>
        <Fact label="Hardware">{hardware_providers === undefined ? 'unknown' : formatCount(hardware_providers)}</Fact>
        <Fact label="Self-signed">{hardware_providers === undefined ? 'unknown' : formatCount(provider_count - hardware_providers)}</Fact>
      </Facts>
      <div>
        <LinkButton href={PATHS.providers} kind="secondary" size="small">
          Check the machines
        </LinkButton>
      </div>
    </div>
  );
}

const DAY = new Intl.DateTimeFormat('en', { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Bar chart by day. Height and colour show the share of checks at which a machine served the model. */
function UptimeDays({ uptime: { days, since } }: { readonly uptime: Uptime }) {
  return (
    <div className="stack-small">
      <ol className="uptime-days" aria-label="Uptime per day, the oldest first">
        {days.map(({ date, share }) => {
          const text = `${DAY.format(new Date(date))}: ${share === null ? 'no checks' : formatUptime(share)}`;
          return (
            <li key={date} title={text} data-level={levelOf(share)}>
              <span className="uptime-bar" style={{ height: `${share === null ? 100 : Math.max(8, 100 * share)}%` }} aria-hidden="true" />
              <span className="visually-hidden">{text}</span>
            </li>
          );
        })}
      </ol>
      <p className="muted small">First checked on {DAY.format(new Date(since))}. Grey: no checks.</p>
    </div>
  );
}

function levelOf(share: number | null): 'none' | 'good' | 'warn' | 'bad' {
  if (share === null) return 'none';
  return share >= 0.99 ? 'good' : share >= 0.9 ? 'warn' : 'bad';
}
