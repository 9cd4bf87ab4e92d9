/** `ControlRoute`: a route of the control socket, created with `get` or `post`, and the errors of its handler. */
import { lazyValidator } from '@inference/protocol';
import type { Static, TSchema } from 'typebox';

export interface ControlRoute {
  readonly method: 'GET' | 'POST';
  /** Begins with `/v1/`. */
  readonly path: string;
  /** Handles the parsed body; undefined without a body. Throws {@link BadBody} or {@link ControlRefusal}. */
  readonly answer: (body: unknown) => Promise<unknown>;
}

/** Answered with status 400. */
export class BadBody extends Error {
  override name = 'BadBody';
}

/** Answered with status 409. `code` is for programs, the message for the owner. */
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

/** Route that changes state. The body must match the schema; use `Type.Object({})` for routes without a body. */
export function post<Schema extends TSchema>(
  path: string,
  schema: Schema,
  answer: (body: Static<Schema>) => Promise<unknown>,
): ControlRoute {
  const validator = lazyValidator(schema);
  return {
    method: 'POST',
    path,
    answer: (body = {}) => {
      if (!validator().Check(body)) {
        const [first] = validator().Errors(body);
        throw new BadBody(`the body is not valid${first === undefined ? '' : `: ${first.instancePath || 'it'} ${first.message}`}`);
      }
      return answer(body as Static<Schema>);
    },
  };
}
