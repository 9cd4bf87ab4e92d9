/** `bodyReader` combines the two checks of a parsed request body: the member table and the schema. */
import type { Static, TSchema } from 'typebox';
import type { ParseOptions } from '../format.js';
import { schemaCheck } from '../schema-check.js';
import { unrecognized } from './common-members.js';
import { ignoredMembers, type MemberTable, type UnknownWording } from './member-table.js';

/** Returns a function that validates a body and lists its ignored members. The function throws RequestError. */
export function bodyReader<Schema extends TSchema>(schema: Schema, table: MemberTable, wording: UnknownWording = unrecognized) {
  const check = schemaCheck(schema);
  return (json: unknown, { unknownMembers = 'ignore' }: ParseOptions = {}): { body: Static<Schema>; ignored: readonly string[] } => {
    const ignored = ignoredMembers(json, table, unknownMembers, wording);
    return { body: check(json), ignored };
  };
}
