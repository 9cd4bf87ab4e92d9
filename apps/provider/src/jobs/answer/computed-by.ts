/** `computedBy` returns the receipt members that describe how an answer was computed: engine, hashes of weights and template, sampling. */
import type { ComputedBy, ReceiptSampling } from '@inference/protocol';
import type { Sampling } from '../../engine/messages.js';

/** Identity of the model that computed an answer. */
export interface ModelIdentity {
  readonly engine: string;
  /** Null until the file is hashed. */
  readonly weightsSha256: string | null;
  /** Null if the model has no chat template. */
  readonly templateSha256: string | null;
}

export interface Computation {
  readonly usedTemplate: boolean;
  /** Null if nothing was sampled. */
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

/** The applied parameters, without those that have no effect. */
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
