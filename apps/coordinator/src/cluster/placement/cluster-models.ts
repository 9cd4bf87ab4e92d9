/** `ClusterModels`: answers which models the cluster serves, and how. Combines local providers with what `Membership` knows of peers. */
import type { ImageOffer, ModelType, VisionOffer } from '@inference/protocol';
import { namesProvider } from '@inference/scheduler';
import type { NetworkModels } from '../../inference/placements.js';
import { combinedVision } from '../../providers/placement/model-directory.js';
import type { Membership } from '../membership/membership.js';

type CapacityListener = Parameters<NetworkModels['onCapacity']>[0];

interface ClusterModelsOptions {
  readonly local: NetworkModels;
  readonly membership: Pick<Membership, 'digestsAtPeers' | 'isServedByPeers' | 'modelsAtPeers' | 'refresh' | 'offersAtPeers'>;
}

export class ClusterModels implements NetworkModels {
  readonly #local: NetworkModels;
  readonly #membership: ClusterModelsOptions['membership'];
  readonly #listeners = new Set<CapacityListener>();

  constructor({ local, membership }: ClusterModelsOptions) {
    this.#local = local;
    this.#membership = membership;
  }

  serves(model: string): boolean {
    return this.#local.serves(model) || this.#membership.isServedByPeers(model);
  }

  /** Only for local providers, because peers do not publish when providers return. */
  returnsAt(model: string): number | null {
    return this.#local.returnsAt(model);
  }

  servingAtPeers(model: string): number {
    let serving = 0;
    for (const [, digest] of this.#membership.digestsAtPeers(model)) serving += digest.serving;
    return serving;
  }

  /** Requests all models anew from the peers that are known to serve `model`. */
  async refresh(model: string): Promise<void> {
    await Promise.all([...this.#membership.digestsAtPeers(model)].map(([owner]) => this.#membership.refresh(owner)));
  }

  isOfType(model: string, type: ModelType): boolean {
    if (this.#local.isOfType(model, type)) return true;
    for (const published of this.#membership.offersAtPeers(model)) if (published.type === type) return true;
    return false;
  }

  listedNames(): readonly string[] {
    return [...new Set([...this.#local.listedNames(), ...this.#membership.modelsAtPeers()])];
  }

  contextLength(model: string, named: Parameters<NetworkModels['contextLength']>[1]): number | null {
    let longest = this.#local.contextLength(model, named);
    // The request names a provider, and it is connected here, so providers of peers do not matter.
    if (longest !== null && named !== null && namesProvider(named)) return longest;
    for (const [, { maxContextTokens }] of this.#membership.digestsAtPeers(model)) longest = Math.max(longest ?? 0, maxContextTokens ?? 0);
    return longest;
  }

  vision(model: string): VisionOffer | null {
    const local = this.#local.vision(model);
    const ofPeers = [...this.#membership.offersAtPeers(model)].flatMap(({ vision }) => vision ?? []);
    return combinedVision(local === null ? ofPeers : [local, ...ofPeers]);
  }

  imageOffers(): ReadonlyMap<string, readonly ImageOffer[]> {
    const offers = new Map(this.#local.imageOffers());
    for (const model of this.#membership.modelsAtPeers()) {
      const ofPeers = [...this.#membership.offersAtPeers(model)].flatMap(({ type, images }) => (type === 'image' ? images : []));
      if (ofPeers.length > 0) offers.set(model, [...(offers.get(model) ?? []), ...ofPeers]);
    }
    return offers;
  }

  onCapacity(listener: CapacityListener): () => void {
    this.#listeners.add(listener);
    const stop = this.#local.onCapacity(listener);
    return () => {
      stop();
      this.#listeners.delete(listener);
    };
  }

  /** Notifies listeners that models may have gained or lost capacity at peers. */
  digestsChanged(models: Parameters<CapacityListener>[0]): void {
    for (const listener of [...this.#listeners]) listener(models);
  }
}
