/**
 * Chips by the number that a device identifier begins with. Only numbers that were seen on real certificates are listed;
 * a chip that is not listed is not refused, because new ones appear every year.
 */

const CHIPS: Readonly<Record<string, string>> = {
  '00006021': 'M2 Max',
  '00006032': 'M3 Ultra',
  '00006040': 'M4 Pro',
  '00006041': 'M4 Max',
};

/** False when the identifier is that of a known chip and the claimed name is of another one. */
export function chipMatchesUdid(claimed: string, udid: string): boolean {
  const [number] = udid.split('-');
  const known = number === undefined ? undefined : CHIPS[number];
  return known === undefined || claimed === known || claimed === `Apple ${known}`;
}
