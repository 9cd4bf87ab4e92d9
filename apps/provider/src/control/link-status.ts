/** State of the link between this machine and an account, in the daemon's report to commands. */
import Type, { type Static } from 'typebox';

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) => Type.Union([schema, Type.Null()]);

export const LinkStatusSchema = Type.Object({
  /**
   * With `none`, nobody signed in. While `waiting`, the coordinator has not answered yet. If `other_coordinator`, the sign-in was with
   * another coordinator. If `unreadable`, the account file cannot be used.
   */
  state: Type.Enum(['none', 'waiting', 'linked', 'refused', 'other_coordinator', 'unreadable']),
  account_name: nullable(Type.String()),
  /** The coordinator's reason code of a refusal. */
  reason: nullable(Type.String()),
  /** Advice for the owner; present unless `linked` or `waiting`. */
  remedy: nullable(Type.String()),
});
export type LinkStatus = Static<typeof LinkStatusSchema>;
