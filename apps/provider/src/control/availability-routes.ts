/** Routes `pause` and `resume` of the control socket. Both respond with the resulting availability. */

import { lazyValidator } from '@inference/protocol';
import Type from 'typebox';
import { type AvailabilityStatus, AvailabilityStatusSchema } from './daemon-status.js';
import { BadBody, type ControlRoute, post } from './route.js';

/** `until` is in milliseconds since 1970, or null for a pause until `resume`. */
const PauseSchema = Type.Object({ until: Type.Union([Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }), Type.Null()]) });

interface AvailabilityAnswers {
  /** Null while the daemon starts. */
  availability(): AvailabilityStatus | null;
  /** Null ends the pause. */
  setPause(pause: { readonly until: number | null } | null): void;
}

const AnswerSchema = Type.Object({ availability: Type.Union([AvailabilityStatusSchema, Type.Null()]) });
const answerValidator = lazyValidator(AnswerSchema);
export const isAvailabilityAnswer = (value: unknown): value is { readonly availability: AvailabilityStatus | null } =>
  answerValidator().Check(value);

export function availabilityRoutes(answers: AvailabilityAnswers, now: () => number = Date.now): ControlRoute[] {
  const apply = (pause: { readonly until: number | null } | null) => {
    answers.setPause(pause);
    return { availability: answers.availability() };
  };
  return [
    post('/v1/pause', PauseSchema, async ({ until }) => {
      if (until !== null && until <= now()) throw new BadBody('the pause would be over already');
      return apply({ until });
    }),
    post('/v1/resume', Type.Object({}), async () => apply(null)),
  ];
}
