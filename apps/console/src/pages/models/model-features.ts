/** `featuresOf`: features of a model for its page, derived from the parameters that the model supports. */
import { pricesOf, readsImages, type ServedModel } from '../../features/models/served-models.js';

export interface ModelFeature {
  readonly label: string;
  readonly supported: boolean;
}

type FeatureFacts = Pick<ServedModel, 'architecture' | 'metadata' | 'pricing' | 'supported_parameters'>;

export function featuresOf(model: FeatureFacts): readonly ModelFeature[] {
  const { model_type, sizes = [], max_images = 1, max_input_images: maxInputImages } = model.metadata;
  const takes = (parameter: string): boolean => model.supported_parameters.includes(parameter);
  switch (model_type) {
    case 'text': {
      const { input, cachedInput } = pricesOf(model);
      return [
        { label: 'Streaming', supported: true },
        { label: 'Tools', supported: takes('tools') },
        { label: 'Structured output (JSON schema)', supported: takes('structured_outputs') },
        { label: 'Reasoning', supported: takes('reasoning') },
        { label: 'Log probabilities', supported: takes('logprobs') },
        { label: 'Seed', supported: takes('seed') },
        { label: 'Lower price for cached input tokens', supported: (cachedInput ?? 0) < (input ?? 0) },
        { label: `Images as input${maxInputImages === undefined ? '' : `, up to ${maxInputImages}`}`, supported: readsImages(model) },
      ];
    }
    case 'embedding':
      return [
        { label: 'Embeddings', supported: true },
        { label: 'Base64 encoding', supported: takes('encoding_format') },
      ];
    case 'image':
      return [
        { label: `Sizes ${sizes.join(', ')}`, supported: sizes.length > 0 },
        { label: `Several images per request, up to ${max_images}`, supported: max_images > 1 },
        { label: 'Seed', supported: takes('seed') },
      ];
    default:
      return model_type satisfies never;
  }
}
