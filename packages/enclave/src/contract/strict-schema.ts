/** `closed`: protocol schemas that refuse unknown members, because an enclave must not sign unknown content. */
import type { TSchema } from 'typebox';

/** The same schema with `additionalProperties: false` on every object. */
export function closed<Schema extends TSchema>(schema: Schema): Schema {
  return closedNode(schema) as Schema;
}

function closedNode(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(closedNode);
  if (typeof node !== 'object' || node === null) return node;
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(node)) copy[key] = closedNode(value);
  if (copy.type === 'object') copy.additionalProperties = false;
  return copy;
}
