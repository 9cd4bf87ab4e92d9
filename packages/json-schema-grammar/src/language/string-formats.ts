/**
 * Regular expressions for `format` values of JSON Schema. Each matches a subset of what the format's RFC allows.
 *
 * Sources: RFC 3339, 4122, 5321, 1123, 2673 and 3986. Other formats are ignored, as annotations.
 */

const YEAR = '[0-9]{4}';
const LEAP_YEAR = '(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)';
const MONTH_DAY = '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))';
const DATE = `(?:${YEAR}-${MONTH_DAY}|${LEAP_YEAR}-02-29)`;
const TIME = '(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])';
const LABEL = '[A-Za-z0-9]{1,15}(?:-[A-Za-z0-9]{1,15}){0,3}';
const DOMAIN = `${LABEL}(?:\\.${LABEL}){0,3}`;
const BYTE = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const HEX4 = '[0-9A-Fa-f]{1,4}';
const SOME = '[0-9]{1,9}';
const CLOCK = `T(?:${SOME}H(?:${SOME}M(?:${SOME}S)?)?|${SOME}M(?:${SOME}S)?|${SOME}S)`;
const CALENDAR = `(?:${SOME}Y(?:${SOME}M(?:${SOME}D)?)?|${SOME}M(?:${SOME}D)?|${SOME}D)`;

/** Anchored patterns by format name. */
export const STRING_FORMATS: ReadonlyMap<string, string> = new Map([
  ['date', `^${DATE}$`],
  ['time', `^${TIME}$`],
  ['date-time', `^${DATE}T${TIME}$`],
  ['duration', `^P(?:${SOME}W|${CLOCK}|${CALENDAR}(?:${CLOCK})?)$`],
  ['email', `^[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@${LABEL}(?:\\.${LABEL}){1,3}$`],
  ['hostname', `^${DOMAIN}$`],
  ['ipv4', `^${BYTE}(?:\\.${BYTE}){3}$`],
  ['ipv6', `^(?:(?:${HEX4}:){7}${HEX4}|(?:${HEX4}:){1,4}:${HEX4}(?::${HEX4}){0,2}|::1?)$`],
  ['uuid', '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$'],
  [
    'uri',
    `^[a-z][a-z0-9+.-]{1,15}://${DOMAIN}(?::[1-9][0-9]{0,3})?(?:/[A-Za-z0-9._~!$&'()*+,;=:@-]*)*(?:\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(?:#[A-Za-z0-9._~-]*)?$`,
  ],
]);
