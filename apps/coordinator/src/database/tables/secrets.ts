/** Table of the secrets that coordinators of one database share. */

export interface SecretTables {
  /** `value`: 32 bytes in hexadecimal. */
  secrets: { name: string; value: string };
}
