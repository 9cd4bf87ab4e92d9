/** `OperationView`: one operation of the API, with example, parameters, request body, responses and errors. */
import { CopyField } from '../../ui/forms/copy-field.js';
import {
  type Operation,
  objectWithin,
  type ResponseObject,
  resolveSchema,
  type Schema,
  type Schemas,
  typeText,
} from './openapi-document.js';

interface OperationViewProps {
  readonly operation: Operation;
  readonly schemas: Schemas;
  /** Origin of the API. */
  readonly base: string;
}

export function OperationView({ operation, schemas, base }: OperationViewProps) {
  const { description, parameters = [], requestBody, responses, security } = operation;
  const samples = operation['x-codeSamples'] ?? [];
  const [[bodyType, body] = []] = Object.entries(requestBody?.content ?? {});
  const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400);
  return (
    <div className="stack-small">
      {description === undefined ? null : <p>{description}</p>}
      {security?.length === 0 ? <p className="muted small">No API key needed.</p> : null}
      {samples.map(({ label, source }) => (
        <CopyField key={label} label={label} hideLabel={samples.length === 1} multiline value={source.replace('$BASE', base)} />
      ))}
      {parameters.length === 0 ? null : (
        <section>
          <h4>Parameters</h4>
          <ul className="api-members">
            {parameters.map((parameter) => (
              <li key={`${parameter.in} ${parameter.name}`}>
                <Member
                  name={parameter.name}
                  type={`${parameter.in}, ${typeText(parameter.schema ?? {})}`}
                  description={parameter.description ?? parameter.schema?.description}
                  required={parameter.required ?? false}
                />
              </li>
            ))}
          </ul>
        </section>
      )}
      {body?.schema === undefined ? null : (
        <section>
          <h4>Request body</h4>
          <p className="muted small">{bodyType}</p>
          <SchemaView schema={body.schema} schemas={schemas} />
        </section>
      )}
      {Object.entries(responses)
        .filter(([status]) => Number(status) < 400)
        .map(([status, response]) => (
          <Success key={status} status={status} response={response} schemas={schemas} />
        ))}
      {errors.length === 0 ? null : (
        <section>
          <h4>Errors</h4>
          <div className="api-errors">
            {errors.map(([status, response]) => (
              <ErrorExamples key={status} status={status} response={response} />
            ))}
          </div>
        </section>
      )}
    </div>
  );
}

interface ResponseProps {
  readonly status: string;
  readonly response: ResponseObject;
}

function Success({ status, response, schemas }: ResponseProps & { readonly schemas: Schemas }) {
  return (
    <section>
      <h4>Response {status}</h4>
      <p>{response.description}</p>
      {Object.entries(response.content ?? {}).map(([type, { schema }]) => (
        <details key={type} className="api-nested">
          <summary>{type}</summary>
          {schema === undefined ? null : <SchemaView schema={schema} schemas={schemas} />}
          {schema?.description === undefined ? null : <p className="small">{schema.description}</p>}
        </details>
      ))}
    </section>
  );
}

function ErrorExamples({ status, response }: ResponseProps) {
  const examples = Object.values(response.content ?? {}).flatMap(({ examples = {} }) => Object.entries(examples));
  return (
    <details className="api-nested">
      <summary>
        <strong>{status}</strong> {examples.map(([name]) => name).join(', ')}
      </summary>
      {examples.map(([name, { summary, value }]) => (
        <div key={name} className="stack-small">
          <p className="small">{summary}</p>
          <CopyField label={`Error ${name}`} hideLabel multiline value={JSON.stringify(value, null, 2)} />
        </div>
      ))}
    </details>
  );
}

/** Maximum levels that can be expanded. Deeper schemas show only their name. */
const MAX_DEPTH = 4;

/** Descriptions for validation errors, such as `a string`, that only repeat the type. */
const REPEATS_TYPE = /^an? \w+$/;

interface SchemaViewProps {
  readonly schema: Schema;
  readonly schemas: Schemas;
  readonly depth?: number;
}

/** Members of an object with types and descriptions. Members that are objects can be expanded. */
function SchemaView({ schema, schemas, depth = 0 }: SchemaViewProps) {
  const object = objectWithin(schema, schemas);
  if (object?.properties === undefined) return <p className="muted">{typeText(schema)}</p>;
  return (
    <ul className="api-members">
      {Object.entries(object.properties).map(([name, member]) => (
        <li key={name}>
          <Member
            name={name}
            type={typeText(member)}
            description={member.description ?? resolveSchema(member, schemas).description}
            required={object.required?.includes(name) ?? false}
          />
          {depth < MAX_DEPTH && objectWithin(member, schemas) !== null ? (
            <details className="api-nested">
              <summary>Members of {name}</summary>
              <SchemaView schema={member} schemas={schemas} depth={depth + 1} />
            </details>
          ) : null}
        </li>
      ))}
    </ul>
  );
}

interface MemberProps {
  readonly name: string;
  readonly type: string;
  readonly description: string | undefined;
  readonly required: boolean;
}

function Member({ name, type, description, required }: MemberProps) {
  return (
    <>
      <p className="api-member">
        <code>{name}</code> <span className="muted small">{type}</span>
        {required ? <strong className="small">required</strong> : null}
      </p>
      {description === undefined || REPEATS_TYPE.test(description) ? null : <p className="small">{description}</p>}
    </>
  );
}
