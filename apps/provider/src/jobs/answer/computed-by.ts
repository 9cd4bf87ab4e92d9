/** `computedBy`: receipt members that describe the computation: engine, hashes of weights and template, sampling parameters. */
import type { ComputedBy, ReceiptSampling } from '@inference/protocol';
import type { Sampling } from '../../engine/messages.js';

/** Identity of the model that computed an answer. */
export interface ModelIdentity {
  readonly engine: string;
  /** Null until computed. */
  readonly weightsSha256: string | null;
  /** Null without a chat template. */
  readonly templateSha256: string | null;
}

/** Computation of one answer. `sampling` is null if nothing was sampled. */
export interface Computation {
  readonly usedTemplate: boolean;
  readonly sampling: Sampling | null;
}

export function computedBy({ engine, weightsSha256, templateSha256 }: ModelIdentity, { usedTemplate, sampling }: Computation): ComputedBy {
  return {
    engine: engineName(engine),
    ...(weightsSha256 === null ? {} : { weights_sha256: weightsSha256 }),
    ...(usedTemplate && templateSha256 !== null ? { template_sha256: templateSha256 } : {}),
    ...(sampling === null ? {} : { sampling: signedSampling(sampling) }),
  };
}

/** Engine name reduced to the characters and length allowed in receipts. */
export function engineName(name: string): string {
  const clean = name.replace(/[^A-Za-z0-9 ._+()/:-]+/g, ' ').replace(/^[^A-Za-z0-9]+/, '');
  return clean.slice(0, 128).trimEnd() || 'unknown';
}

/** Applied parameters, without neutral values. */
function signedSampling(sampling: Sampling): ReceiptSampling {
  const { temperature, topP, topK, minP, seed, frequencyPenalty, presencePenalty, repetitionPenalty = 1 } = sampling;
  return {
    temperature: decimalText(temperature),
    ...(topP === null ? {} : { top_p: decimalText(topP) }),
    ...(topK === null ? {} : { top_k: decimalText(topK) }),
    ...(minP === null ? {} : { min_p: decimalText(minP) }),
    ...(seed === null ? {} : { seed: decimalText(seed) }),
    ...(frequencyPenalty === 0 ? {} : { frequency_penalty: decimalText(frequencyPenalty) }),
    ...(presencePenalty === 0 ? {} : { presence_penalty: decimalText(presencePenalty) }),
    ...(repetitionPenalty === 1 ? {} : { repetition_penalty: decimalText(repetitionPenalty) }),
  };
}

/** A decimal number without an exponent. Numbers below 1e-20 are 0. */
export function decimalText(value: number): string {
  const text = String(value === 0 ? 0 : value);
  if (!/[eE]/.test(text)) return text.replace(/(\.\d{20})\d+$/, '$1');
  const fixed = value.toFixed(20).replace(/\.?0+$/, '');
  return fixed === '-0' ? '0' : fixed;
}
