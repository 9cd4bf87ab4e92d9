/** One thing that the owner's commands may ask of the daemon: the address, the shape of the body, and how it is answered. */
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';

export interface ControlRoute {
  readonly method: 'GET' | 'POST';
  /** Begins with `/v1/`. */
  readonly path: string;
  /** Gets the parsed body, undefined where none came. Throws {@link BadBody} or {@link ControlRefusal}. */
  readonly answer: (body: unknown) => Promise<unknown>;
}

/** The body is not what the route takes. */
export class BadBody extends Error {
  override name = 'BadBody';
}

/** What was asked for cannot be done now; `code` is for programs, the message is a sentence for the owner. */
export class ControlRefusal extends Error {
  override name = 'ControlRefusal';
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export function get(path: string, answer: () => Promise<unknown>): ControlRoute {
  return { method: 'GET', path, answer: () => answer() };
}

/** A change. The body must be of the schema; for a route that takes nothing, `Type.Object({})`. */
export function post<Schema extends TSchema>(
  path: string,
  schema: Schema,
  answer: (body: Static<Schema>) => Promise<unknown>,
): ControlRoute {
  const described = Compile(schema);
  return {
    method: 'POST',
    path,
    answer: (body = {}) => {
      if (!described.Check(body)) {
        const [first] = described.Errors(body);
        throw new BadBody(`the body is not valid${first === undefined ? '' : `: ${first.instancePath || 'it'} ${first.message}`}`);
      }
      return answer(body as Static<Schema>);
    },
  };
}
