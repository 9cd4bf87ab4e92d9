/**
 * Chips by the identifier that begins a Mac's provisioning UDID. A claim that contradicts it is refused; identifiers that
 * are not listed here, those of newer chips, contradict nothing.
 */
const CHIPS: Readonly<Record<string, string>> = {
  '8103': 'Apple M1',
  '6000': 'Apple M1 Pro',
  '6001': 'Apple M1 Max',
  '6002': 'Apple M1 Ultra',
  '8112': 'Apple M2',
  '6020': 'Apple M2 Pro',
  '6021': 'Apple M2 Max',
  '6022': 'Apple M2 Ultra',
  '8122': 'Apple M3',
  '6030': 'Apple M3 Pro',
  '6031': 'Apple M3 Max',
  '6034': 'Apple M3 Max',
  '6032': 'Apple M3 Ultra',
  '8132': 'Apple M4',
  '6040': 'Apple M4 Pro',
  '6041': 'Apple M4 Max',
};

/** The chip of a UDID such as `00006041-00112233AABBCCDC`, or null when its identifier is not known. */
export function chipOfUdid(provisioningUdid: string): string | null {
  return CHIPS[provisioningUdid.slice(4, 8)] ?? null;
}
