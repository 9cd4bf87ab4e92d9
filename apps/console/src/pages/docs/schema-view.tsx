/** `SchemaView`: members of an object with types and descriptions. Members that are objects can be expanded. */
import { objectWithin, resolveSchema, type Schema, type Schemas, typeText } from './openapi-document.js';

/** Maximum levels that can be expanded. Deeper schemas show only their name. */
const MAX_DEPTH = 4;

/** Descriptions for validation errors, such as `a string`, that only repeat the type. */
const REPEATS_TYPE = /^an? \w+$/;

interface SchemaViewProps {
  readonly schema: Schema;
  readonly schemas: Schemas;
  readonly depth?: number;
}

export function SchemaView({ schema, schemas, depth = 0 }: SchemaViewProps) {
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

export function Member({ name, type, description, required }: MemberProps) {
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
