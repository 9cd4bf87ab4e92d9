import { describe, expect, it } from 'vitest';
import { objectWithin, operationsByTag, typeText } from '../../src/pages/docs/openapi-document.js';

describe('the types of the API reference', () => {
  it.each([
    [{ type: 'string' }, 'string'],
    [{ type: 'array', items: { type: 'integer' } }, 'array of integer'],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 'string or null'],
    [{ enum: ['a', 'b'] }, '"a" or "b"'],
    [{ const: 'list' }, '"list"'],
    [{ $ref: '#/components/schemas/Model' }, 'Model'],
    [{ type: ['string', 'null'] }, 'string or null'],
    [{}, 'any value'],
  ])('%j is %s', (schema, text) => {
    expect(typeText(schema)).toBe(text);
  });

  it('unfold references, arrays and alternatives', () => {
    const Model = { type: 'object', properties: { id: { type: 'string' } } };
    const schema = { anyOf: [{ type: 'null' }, { type: 'array', items: { $ref: '#/components/schemas/Model' } }] };
    expect(objectWithin(schema, { Model })).toBe(Model);
    expect(objectWithin({ type: 'string' }, {})).toBeNull();
  });
});

it('operations are grouped by tag, with an anchor each', () => {
  const operation = { summary: 'A.', tags: ['Models'], responses: {} };
  const paths = { '/v1/models/{id}': { get: operation }, '/': { get: { ...operation, tags: ['System'] } } };
  const groups = operationsByTag({ info: { version: '1' }, paths, components: { schemas: {} } });
  expect([...groups].map(([tag, operations]) => [tag, operations.map(({ id, method }) => [id, method])])).toEqual([
    ['Models', [['get-v1-models-id', 'GET']]],
    ['System', [['get', 'GET']]],
  ]);
});
