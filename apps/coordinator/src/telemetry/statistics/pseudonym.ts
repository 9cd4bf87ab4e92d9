/** `pseudonyms` names accounts on the leaderboard by a keyed hash of their id. Only the key links a name to its account. */
import { createHmac } from 'node:crypto';
import { BoundedMap } from '@inference/scheduler/bounded-map';

const ADJECTIVES = (
  'able amber ample azure bold brave brisk calm candid clever coral cosmic crisp daring deft eager early fair fleet fond gentle ' +
  'glad golden grand hardy honest humble ivory jolly keen kind lively lucid lunar merry mild misty modest neat nimble noble patient ' +
  'plucky polar prime proud quick quiet rapid royal rustic sage serene silent silver solar steady stellar sunny swift tidy vivid warm witty'
).split(' ');
const ANIMALS = (
  'alpaca badger beaver bison bobcat camel caribou condor coyote crane dingo dolphin eagle egret elk falcon ferret finch gazelle ' +
  'gecko gibbon grouse hare hawk heron ibex ibis impala jackal jaguar kestrel kiwi koala lemur leopard lynx magpie marmot marten moose ' +
  'narwhal ocelot osprey otter owl panda pelican penguin puffin puma quail rabbit raven robin salmon seal stork swan tapir tern toucan ' +
  'walrus wolf wren'
).split(' ');
/** Crockford's base 32, which has no letters that look like digits. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** Maximum cached names. All leaderboards together show about two thousand accounts. */
const MAX_CACHED_NAMES = 4096;

/** Returns a function that names an account, such as `keen-otter-7k3m9q2x`. 52 bits make collisions rare among a million accounts. */
export function pseudonyms(secret: Uint8Array): (accountId: string) => string {
  const cache = new BoundedMap<string, string>(MAX_CACHED_NAMES);
  return (accountId) => {
    const cached = cache.get(accountId);
    if (cached !== undefined) return cached;
    const name = nameOf(createHmac('sha256', secret).update('leaderboard/v1\0').update(accountId).digest());
    cache.set(accountId, name);
    return name;
  };
}

function nameOf(digest: Buffer): string {
  const digits = Array.from(digest.subarray(2, 10), (byte) => DIGITS[byte % 32]).join('');
  return `${ADJECTIVES[digest.readUInt8(0) % 64]}-${ANIMALS[digest.readUInt8(1) % 64]}-${digits}`;
}
