/** From when on a price counts. The one of the settings has counted from the beginning of time. */
import { Time } from '../../../ui/display/time.js';

export function ValidFrom({ at }: { readonly at: string }) {
  return Date.parse(at) === 0 ? 'the settings' : <Time at={at} as="date-time" />;
}
