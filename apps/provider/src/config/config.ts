/** Schema of `config.toml`: types, defaults and error texts. Names are the file's keys. */
import Type, { type Static } from 'typebox';
import { Default } from 'typebox/value';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
export const KV_CACHE_TYPES = ['f16', 'q8_0'] as const;
export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

/** `expected` completes the error sentence "KEY must be …". */
const word = (pattern: string, expected: string) => Type.String({ pattern, expected });
const yesOrNo = (byDefault: boolean) => Type.Boolean({ default: byDefault, expected: 'true or false' });
const whole = (minimum: number, maximum: number) =>
  Type.Integer({ minimum, maximum, expected: `a whole number from ${minimum} to ${maximum}` });

function oneOf<const Words extends string[]>(words: readonly [...Words], byDefault?: Words[number]) {
  const expected = `one of ${words.map((each) => JSON.stringify(each)).join(', ')}`;
  return Type.Enum([...words] as [...Words], { expected, ...(byDefault === undefined ? {} : { default: byDefault }) });
}

const CLOSED = { additionalProperties: false } as const;
const SECTION = { ...CLOSED, default: {}, expected: 'a table of settings' } as const;
const TIME = '^([01][0-9]|2[0-3]):[0-5][0-9]$';

const WindowSchema = Type.Object(
  {
    /** Days on which the window begins. Default: every day. */
    days: Type.Optional(
      Type.Array(oneOf(DAYS), {
        minItems: 1,
        maxItems: 7,
        uniqueItems: true,
        expected: 'a list of days, each once, such as ["mon", "tue"]',
      }),
    ),
    from: word(TIME, 'a time of day such as "22:00"'),
    /** A time not after `from` is on the next day; 24:00 is the end of the same day. */
    to: word(`${TIME}|^24:00$`, 'a time of day such as "07:00"'),
  },
  { ...CLOSED, expected: 'a table such as { days = ["mon"], from = "22:00", to = "07:00" }' },
);

export const ConfigSchema = Type.Object(
  {
    /** Address of the coordinator; may come from the command line instead. */
    coordinator: Type.Optional(word('^(https?|wss?)://[^/\\s]+', 'an http, https, ws or wss address')),
    /** Replaces the Secure Enclave by a key in a file, for tests and demonstrations only. */
    simulated_enclave: yesOrNo(false),
    log_level: oneOf(LOG_LEVELS, 'info'),
    /** Whether the owner may pause, resume and schedule this machine, and choose its models, from the console. */
    remote_control: yesOrNo(true),
    /** Whether macOS shows notifications; other systems have none. */
    notifications: yesOrNo(true),
    models: Type.Object(
      {
        /** Concurrent sequences per model. Default: planned from the memory. */
        slots: Type.Optional(whole(1, 256)),
        /** Tokens of one sequence. Default: planned from the memory. */
        context: Type.Optional(whole(256, 1 << 24)),
        /** Element type of the KV cache of text models. `q8_0` needs about half of the memory of `f16`. */
        kv_cache_type: oneOf(KV_CACHE_TYPES, 'f16'),
        /** Memory reserved for the owner in gigabytes. Default: two fifths of the memory. */
        reserve_gb: Type.Optional(Type.Number({ minimum: 0, maximum: 4096, expected: 'a number of gigabytes from 0 to 4096' })),
        /** Maximum time that an unused model stays in memory: no limit, `idle_minutes`, or 10 s. A model's own setting may be shorter. */
        keep: oneOf(['always', 'idle', 'on_demand'], 'always'),
        /** Minutes without use after which `keep = "idle"` unloads a model. */
        idle_minutes: Type.Integer({ minimum: 1, maximum: 99_999, default: 10, expected: 'a whole number of minutes from 1 to 99999' }),
      },
      SECTION,
    ),
    availability: Type.Object(
      {
        /** IANA name. Default: the system's. */
        time_zone: Type.Optional(word('^[A-Za-z][A-Za-z0-9_+/-]{0,63}$', 'the name of a time zone such as "Europe/Berlin"')),
        /** An empty list means always. */
        windows: Type.Array(WindowSchema, { maxItems: 64, default: [], expected: 'a list of at most 64 windows' }),
        /** Without a value, the owner's activity does not matter. */
        only_when_idle_minutes: Type.Optional(whole(1, 1440)),
        on_battery: oneOf(['stop', 'serve'], 'stop'),
        when_hot: oneOf(['stop', 'serve'], 'stop'),
        /** Running jobs when serving stops: `finish` gives them up to 10 minutes; `hand_back` returns those without output at once. */
        when_leaving: oneOf(['finish', 'hand_back'], 'finish'),
      },
      SECTION,
    ),
    update: Type.Object(
      {
        automatic: yesOrNo(true),
        /** Machines on `canary` get a new version first. */
        channel: oneOf(['stable', 'canary'], 'stable'),
      },
      SECTION,
    ),
    /** Whether this Mac may be enrolled in the coordinator's device management. */
    enrolment: Type.Object({ enrol: yesOrNo(false) }, SECTION),
    hardening: Type.Object(
      {
        /** With `deny`, processes with a model have no network access, if the system supports the restriction. */
        engine_network: oneOf(['deny', 'allow'], 'deny'),
      },
      SECTION,
    ),
  },
  { ...CLOSED, expected: 'a table of settings' },
);

export type Config = Static<typeof ConfigSchema>;

/** Settings of an empty or absent file. */
export const DEFAULTS = Default(ConfigSchema, {}) as Config;
