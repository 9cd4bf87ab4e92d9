/** `system_fingerprint` of answers: the same for the same weights on the same build of the engine, as in OpenAI's API. */
import { sha256Hex } from '@inference/protocol/crypto';
import type { ServedModel } from '../serving/served-model.js';

/** A model keeps its fingerprint, also where the hash of its file becomes known only later. */
const known = new WeakMap<ServedModel, string>();

export function systemFingerprint(model: ServedModel, engineBuild: string): string {
  let fingerprint = known.get(model);
  if (fingerprint === undefined) {
    const { facts, fileSha256 } = model.serving;
    const weights = fileSha256() ?? `${facts.id} ${facts.quantization} ${facts.fileBytes}`;
    fingerprint = `fp_${sha256Hex(new TextEncoder().encode(`${engineBuild} ${weights}`)).slice(0, 12)}`;
    known.set(model, fingerprint);
  }
  return fingerprint;
}
