/** Display name of a machine: the name from its owner, else the chip, else the short provider id. */

interface Nameable {
  readonly provider_id: string;
  readonly name: string | null;
  /** Reported by the machine in its current or last session. */
  readonly chip_name: string | null;
}

const SHOWN_DIGITS = 8;

export function machineName({ provider_id, name, chip_name }: Nameable): string {
  return name ?? chip_name ?? `Machine ${shortId(provider_id)}`;
}

export function shortId(providerId: string): string {
  return providerId.slice(0, SHOWN_DIGITS);
}
