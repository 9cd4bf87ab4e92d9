/** What the owner's commands ask of the link to an account. */
import Type from 'typebox';
import type { LinkStatus } from './link-status.js';
import { type ControlRoute, post } from './route.js';

/** `signInChanged`: the owner has signed in or out. Resolves with what the coordinator says to it, if that comes soon. */
export function linkRoutes(answers: { readonly signInChanged: () => Promise<LinkStatus> }): ControlRoute[] {
  return [post('/v1/link', Type.Object({}, { additionalProperties: false }), () => answers.signInChanged())];
}
