/** What is read of the images at the moment somebody asks for the metrics. */
import type { ImageStore } from '../images/image-store.js';
import type { ImageSupply } from '../inference/queue/image-supply.js';
import type { Metrics } from './metrics.js';

export function readImages(metrics: Metrics, store: Pick<ImageStore, 'usage'>, supply: Pick<ImageSupply, 'waiting'>): void {
  metrics.reading(
    'image_store_bytes',
    'Bytes on the disk of images, and those that machines have sent of unfinished ones.',
    ['state'],
    () => [
      [{ state: 'stored' }, store.usage.bytes],
      [{ state: 'promised' }, store.usage.heldBytes],
    ],
  );
  metrics.reading('image_store_images', 'Images that can be fetched.', [], () => [[{}, store.usage.images]]);
  metrics.reading('image_queue_length', 'Requests that wait because no provider of images is here.', [], () => [[{}, supply.waiting]]);
}
