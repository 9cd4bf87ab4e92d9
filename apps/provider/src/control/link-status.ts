/** Which account the machine earns for, as its daemon tells its owner's commands. */
import Type, { type Static } from 'typebox';

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const LinkStatusSchema = Type.Object({
  /**
   * `none`: nobody signed in. `waiting`: shown, or to be shown on the next connection. `linked`. `refused`: with a reason.
   * `other_coordinator`: the sign-in was with another one. `unreadable`: the file cannot be used.
   */
  state: Type.Enum(['none', 'waiting', 'linked', 'refused', 'other_coordinator', 'unreadable']),
  account_name: nullable(Type.String()),
  /** Of a refusal, the coordinator's word. */
  reason: nullable(Type.String()),
  /** What the owner can do; there whenever it is neither `linked` nor `waiting`. */
  remedy: nullable(Type.String()),
});
export type LinkStatus = Static<typeof LinkStatusSchema>;
