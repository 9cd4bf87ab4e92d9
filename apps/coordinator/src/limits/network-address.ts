/** `networkOf`: the part of an IP address by which limits count a client. */
import { isIPv6 } from 'node:net';

/** Returns an IPv4 address unchanged, and the /64 network of an IPv6 address, the usual allocation of a subscriber. */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/, '').toLowerCase();
  if (!isIPv6(bare)) return bare;
  const mapped = /^::ffff:(\d+(?:\.\d+){3})$/.exec(bare)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = bare.split('::');
  const before = groupsOf(head);
  const after = tail === undefined ? [] : groupsOf(tail);
  // An embedded IPv4 address takes two groups, and is never among the first four.
  const written = before.length + after.length + (bare.includes('.') ? 1 : 0);
  const groups = [...before, ...Array.from({ length: Math.max(0, 8 - written) }, () => '0'), ...after];
  return `${groups
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`;
}

function groupsOf(text: string): string[] {
  return text === '' ? [] : text.split(':');
}
