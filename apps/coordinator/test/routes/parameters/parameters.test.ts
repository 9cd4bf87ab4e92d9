import { LeaderboardQuerySchema, RequestError } from '@inference/formats';
import { describe, expect, it } from 'vitest';
import { csvLine, prefersCsv } from '../../../src/routes/billing/csv.js';
import { UsageQuerySchema } from '../../../src/routes/billing/payment-schemas.js';
import { decodeUsageCursor, encodeUsageCursor } from '../../../src/routes/billing/payments.js';
import { readPageQuery } from '../../../src/routes/parameters/pagination.js';
import { queryReader } from '../../../src/routes/parameters/query.js';
import { readSortedPage } from '../../../src/routes/parameters/sorted-pages.js';
import { parseTime, readDayRange } from '../../../src/routes/parameters/times.js';

/** Returns the `RequestError` that `step` throws, or undefined. */
function refusal(step: () => unknown): RequestError | undefined {
  try {
    step();
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
  return undefined;
}

describe('query parameters', () => {
  const read = queryReader(LeaderboardQuerySchema);

  it('have defaults; unknown members are tolerated', () => {
    const defaults = { metric: 'earnings', window: 'all', limit: 50 };
    expect(read('/v1/leaderboard')).toEqual(defaults);
    expect(read('/v1/leaderboard?')).toEqual(defaults);
    expect(read('/v1/leaderboard?utm_source=x&utm_source=y&__proto__=1&constructor=2')).toEqual(defaults);
    expect(read('/v1/leaderboard?metric=jobs&window=24h&limit=200')).toEqual({ metric: 'jobs', window: '24h', limit: 200 });
    expect(read('/v1/leaderboard?%6Cimit=7').limit).toBe(7);
  });

  it.each([
    ['metric', 'metric='],
    ['metric', 'metric=Earnings'],
    ['metric', 'metric=earnings,jobs'],
    ['metric', 'metric=jobs&metric=jobs'],
    ['window', 'window=1h'],
    ['window', 'window=24H'],
    ['window', 'window=7d&window=24h'],
    ['window', 'window=all%00'],
    ['limit', 'limit='],
    ['limit', 'limit=0'],
    ['limit', 'limit=201'],
    ['limit', 'limit=-1'],
    ['limit', 'limit=1.5'],
    ['limit', 'limit=5.0'],
    ['limit', 'limit=1e2'],
    ['limit', 'limit=0x10'],
    ['limit', 'limit=010'],
    ['limit', 'limit=+5'],
    ['limit', 'limit= 5'],
    ['limit', 'limit=NaN'],
    ['limit', 'limit=99999999999999999999'],
    ['limit', 'limit=ten'],
    ['limit', 'limit=5&limit=6'],
    ['limit', 'limit=%zz'],
  ])('that are invalid are named: %s in %s', (name, query) => {
    const error = refusal(() => read(`/v1/leaderboard?${query}`));
    expect(error).toMatchObject({ code: 'invalid_request', param: name, message: expect.stringContaining(name) });
  });

  it('are never echoed', () => {
    expect(refusal(() => read('/v1/leaderboard?metric=%3Cscript%3E'))?.message).toBe('metric must be one of earnings, tokens, jobs.');
  });

  it('may be omitted without a default', () => {
    expect(queryReader(UsageQuerySchema)('/v1/payments/usage?x=1')).toEqual({});
  });
});

describe('the limit of a page', () => {
  it('has the digits of one number', () => {
    expect(readPageQuery({})).toEqual({ limit: 50, after: null });
    expect(readPageQuery({ limit: '200' }).limit).toBe(200);
    const invalid = ['', '0', '201', '-1', '+5', ' 5', '5 ', '1.5', '5.0', '1e2', '0x10', '0b1', '010', 'ten', ['5'], ['5', '6']];
    for (const limit of invalid as string[]) {
      const error = refusal(() => readPageQuery({ limit }));
      expect(error, limit).toMatchObject({ code: 'invalid_request', param: 'limit', message: expect.stringContaining('limit') });
      expect(
        refusal(() => readSortedPage({ limit }, ['time'])),
        limit,
      ).toEqual(error);
    }
  });
});

describe('times in a query', () => {
  it('are a date, or a time with its zone', () => {
    expect(parseTime('from', undefined)).toBeUndefined();
    expect(parseTime('from', '2026-03-01')).toBe(Date.UTC(2026, 2, 1));
    expect(parseTime('from', '2028-02-29')).toBe(Date.UTC(2028, 1, 29));
    expect(parseTime('from', '2026-03-01T12:30Z')).toBe(Date.UTC(2026, 2, 1, 12, 30));
    expect(parseTime('from', '2026-03-01T12:30:05.250Z')).toBe(Date.UTC(2026, 2, 1, 12, 30, 5, 250));
    expect(parseTime('from', '2026-03-01T00:30:00+02:00')).toBe(Date.UTC(2026, 1, 28, 22, 30));
  });

  const read = queryReader(UsageQuerySchema);
  it.each([
    '',
    'yesterday',
    '2026',
    '2026-13-01',
    '2026-02-30',
    '2026-02-29',
    '2026-04-31T00:00:00Z',
    '2026-01-01T25:00:00Z',
    '2026-01-01T00:61:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00:00 01:00',
    '2026-01-01T00:00:00%2B99:99',
    '-271821-04-20',
    '1767225600000',
  ])('are refused for %j', (text) => {
    const error = refusal(() => parseTime('to', read(`/v1/payments/usage?to=${text}`).to));
    expect(error).toMatchObject({ code: 'invalid_request', param: 'to' });
  });
});

describe('a range of days', () => {
  it('covers at most 366 days, both ends included', () => {
    const { from, to } = readDayRange({ from: '2026-01-01', to: '2027-01-01' }, 0);
    expect(to - from + 1).toBe(366);
    const error = refusal(() => readDayRange({ from: '2026-01-01', to: '2027-01-02' }, 0));
    expect(error).toMatchObject({ param: 'from', message: 'from and to must cover at most 366 days.' });
  });
});

describe('cursors', () => {
  const place = { completedAt: 1_767_225_600_123, jobId: '0a1b2c3d-0000-4000-8000-00000000000f' };

  it('decode to the encoded values', () => {
    expect(decodeUsageCursor(encodeUsageCursor(place))).toEqual(place);
    expect(encodeUsageCursor(place)).toMatch(/^[A-Za-z0-9_-]+$/);
  });

  it.each([
    'x',
    `${encodeUsageCursor(place)}=`,
    `${encodeUsageCursor(place)}A`,
    encodeUsageCursor(place).slice(0, -1),
    encodeUsageCursor({ ...place, completedAt: -1 }),
    encodeUsageCursor({ ...place, completedAt: 1.5 }),
    encodeUsageCursor({ ...place, completedAt: Number.MAX_SAFE_INTEGER + 1 }),
    encodeUsageCursor({ ...place, jobId: "' or 1=1 --" }),
    encodeUsageCursor({ ...place, jobId: place.jobId.toUpperCase() }),
    Buffer.from(`${encodeUsageCursor(place)}\u0000`).toString('base64url'),
  ])('are refused when they are %j', (text) => {
    expect(refusal(() => decodeUsageCursor(text))).toMatchObject({ code: 'invalid_request', param: 'cursor' });
  });
});

describe('CSV', () => {
  it('follows RFC 4180, and is never a formula', () => {
    expect(csvLine(['a', 1, 'b,c', 'd"e', 'f\r\ng'])).toBe('a,1,"b,c","d""e","f\r\ng"\r\n');
    expect(csvLine(['=1+1', '+x', '-x', '@x', '\tx'])).toBe("'=1+1,'+x,'-x,'@x,'\tx\r\n");
    expect(csvLine(['=HYPERLINK("http://x","y")'])).toBe(`"'=HYPERLINK(""http://x"",""y"")"\r\n`);
    expect(csvLine([-5, ''])).toBe('-5,\r\n');
  });

  it.each([
    ['text/csv', true],
    ['TEXT/CSV; charset=utf-8', true],
    ['text/csv, application/json;q=0.5', true],
    ['text/csv, */*;q=0.1', true],
    ['application/json;q=0.2, text/csv;q=0.3', true],
    [undefined, false],
    ['', false],
    ['*/*', false],
    ['application/json', false],
    ['application/json, text/csv', false],
    ['application/json, text/plain, */*', false],
    ['text/html,application/xhtml+xml,*/*;q=0.8', false],
    ['text/csv;q=0', false],
    ['text/*', false],
  ])('is sent for Accept: %s: %s', (accept, wanted) => {
    expect(prefersCsv(accept)).toBe(wanted);
  });
});
