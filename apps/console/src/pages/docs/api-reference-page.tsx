/** `/api-reference`: reference of the public API, generated from the coordinator's OpenAPI document. */
import './docs.css';
import './api-reference.css';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link } from 'wouter';
import { api } from '../../api/api-client.js';
import { decodePart } from '../../routing/decode-part.js';
import { PATHS } from '../../routing/paths.js';
import { Card, PageHeader } from '../../ui/display/page.js';
import { Loaded } from '../../ui/feedback/error-state.js';
import { Skeleton } from '../../ui/feedback/placeholders.js';
import { CopyField } from '../../ui/forms/copy-field.js';
import { type OpenApiDocument, operationsByTag } from './openapi-document.js';
import { OperationView } from './operation-view.js';

export function Page() {
  const query = useQuery({
    queryKey: ['openapi'],
    queryFn: ({ signal }) => api.get<OpenApiDocument>('/openapi.json', { signal }),
    staleTime: Infinity,
  });
  return (
    <>
      <PageHeader
        title="API reference"
        about={
          <>
            Every public route, from the <a href="/openapi.json">OpenAPI document</a>. Explanations are in the{' '}
            <Link href={PATHS.docs}>documentation</Link>.
          </>
        }
      />
      <div className="stack">
        <Card title="Base URL and key">
          <div className="stack-small">
            <CopyField label="Base URL" value={window.location.origin} />
            <p>
              The examples take the API key from the environment: <code>export KEY=…</code>. Create one under{' '}
              <Link href={PATHS.keys}>API keys</Link>.
            </p>
          </div>
        </Card>
        <Loaded query={query} subject="The API reference">
          {query.data === undefined ? (
            <div aria-busy="true">
              <Skeleton height="40rem" />
            </div>
          ) : (
            <Areas document={query.data} />
          )}
        </Loaded>
      </div>
    </>
  );
}

function Areas({ document }: { readonly document: OpenApiDocument }) {
  const [target] = useState(() => decodePart(window.location.hash.slice(1)));
  useEffect(() => {
    if (target !== '') window.document.getElementById(target)?.scrollIntoView();
  }, [target]);
  return [...operationsByTag(document)].map(([tag, operations]) => (
    <Card key={tag} title={tag} flush>
      <ul className="api-operations">
        {operations.map(({ id, method, path, operation }) => (
          <li key={id} id={id}>
            <details open={id === target}>
              <summary className="api-heading">
                <span className="api-method" data-method={method}>
                  {method}
                </span>
                <code>{path}</code>
                <span className="api-summary">{operation.summary}</span>
              </summary>
              <div className="api-operation">
                <h3 className="visually-hidden">
                  {method} {path}
                </h3>
                <a className="small" href={`#${id}`}>
                  Link to this operation
                </a>
                <OperationView operation={operation} schemas={document.components.schemas} base={window.location.origin} />
              </div>
            </details>
          </li>
        ))}
      </ul>
    </Card>
  ));
}
