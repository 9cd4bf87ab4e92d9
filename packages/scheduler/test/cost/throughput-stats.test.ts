import { describe, expect, it } from 'vitest';
import { type AnswerSample, ThroughputStats } from '../../src/cost/throughput-stats.js';
import { id } from '../providers.js';

const hardware = { chip_family: 'M4', cpu_cores: 10, gpu_cores: 10, bandwidth_gbs: 120 };
const sample: AnswerSample = {
  promptTokens: 1000,
  completionTokens: 100,
  streamed: true,
  firstContentMs: 2000,
  elapsedMs: 6000,
  otherJobs: 0,
};
const [provider, model] = [id('p'), 'm'];

describe('the throughput of a provider', () => {
  it('is estimated from its bandwidth before it is measured', () => {
    const book = new ThroughputStats();
    const guessed = book.estimate(provider, model, hardware);
    expect(guessed).toMatchObject({ decodeTps: 15, samples: 0 });
    expect(book.estimate(provider, model, { ...hardware, bandwidth_gbs: 400 }).decodeTps).toBeGreaterThan(guessed.decodeTps);
    expect(book.estimate(provider, model, { ...hardware, bandwidth_gbs: 99_999 }).decodeTps).toBe(125);
    expect(book.estimate(provider, model, { ...hardware, bandwidth_gbs: 0 }).decodeTps).toBeGreaterThan(1);
  });

  it('is the average of the first answers, and follows changes', () => {
    const book = new ThroughputStats();
    expect(book.record(provider, model, hardware, sample)).toEqual({ prefillTps: 500, decodeTps: 25, samples: 1 });
    for (let count = 0; count < 30; count++) book.record(provider, model, hardware, { ...sample, elapsedMs: 4000 });
    const speed = book.estimate(provider, model, hardware);
    expect(speed.decodeTps).toBeCloseTo(50, 0);
    expect(speed.samples).toBe(31);
    expect(book.estimate(provider, 'other', hardware).samples).toBe(0);
    expect(book.estimate(id('other'), model, hardware).samples).toBe(0);
  });

  it('equals the result of a job alone, with any concurrent jobs', () => {
    const book = new ThroughputStats();
    expect(book.record(provider, model, hardware, { ...sample, otherJobs: 4 })?.decodeTps).toBe(50);
  });

  it('of plain answers excludes the prompt', () => {
    const book = new ThroughputStats();
    book.record(provider, model, hardware, sample);
    const plain = { ...sample, streamed: false, firstContentMs: 6000 };
    expect(book.record(provider, model, hardware, plain)).toEqual({ prefillTps: 500, decodeTps: 25, samples: 2 });
  });

  it('is measured by embeddings, which have no completion tokens', () => {
    const book = new ThroughputStats();
    const vectors = { ...sample, completionTokens: 0, streamed: false, promptOnly: true, firstContentMs: 2000, elapsedMs: 2000 };
    expect(book.record(provider, model, hardware, vectors)).toEqual({ prefillTps: 500, decodeTps: 15, samples: 1 });
    // Token counting runs no model.
    expect(book.record(provider, model, hardware, { ...vectors, promptOnly: false })).toBeNull();
  });

  it('is not measured from answers that are too short', () => {
    const book = new ThroughputStats();
    expect(book.record(provider, model, hardware, { ...sample, promptTokens: 5, completionTokens: 2 })).toBeNull();
    expect(book.estimate(provider, model, hardware).samples).toBe(0);
  });
});
