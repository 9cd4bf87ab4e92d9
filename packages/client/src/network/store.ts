/** Persistent state of a client: chosen providers, whether a real one was seen, and the log verifier's state. */
import { lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';

/** Stores one text. A file, `localStorage` or a database row suffices. */
export interface Store {
  /** Null: nothing is stored. */
  load(): Promise<string | null> | string | null;
  save(text: string): Promise<void> | void;
}

export function memoryStore(): Store {
  let stored: string | null = null;
  return {
    load: () => stored,
    save: (text) => {
      stored = text;
    },
  };
}

/** Maximum stored models; the least recently chosen model is dropped. */
const MAX_MODELS = 128;
/** Maximum stored providers of one model. */
export const MAX_CHOICE_PROVIDERS = 16;

const ChoiceSchema = Type.Object({
  model: Type.String({ minLength: 1, maxLength: 256 }),
  /** In order of preference. */
  provider_ids: Type.Array(Type.String({ pattern: '^[0-9a-f]{32}$' }), { maxItems: MAX_CHOICE_PROVIDERS }),
  /** Milliseconds. */
  chosen_at: Type.Integer({ minimum: 0 }),
});
export type Choice = Static<typeof ChoiceSchema>;

const StateSchema = Type.Object({
  v: Type.Literal(1),
  choices: Type.Array(ChoiceSchema, { maxItems: MAX_MODELS }),
  /** Whether a provider of this network was verified without simulation. */
  has_seen_real: Type.Boolean(),
  /** Opaque state of the log verifier. */
  log: Type.Optional(Type.String({ maxLength: 65_536 })),
});
type State = Static<typeof StateSchema>;
const validator = lazyValidator(StateSchema);

/** Typed view of a {@link Store}. */
export class ClientState {
  readonly #store: Store;
  #state: State | null = null;
  #saved: Promise<void> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reads the store once. Throws if the stored text is not a state. */
  async load(): Promise<void> {
    if (this.#state !== null) return;
    const text = await this.#store.load();
    if (text === null) {
      this.#state = { v: 1, choices: [], has_seen_real: false };
      return;
    }
    const value = parseJson(text);
    // A damaged state is not replaced, because the log and the chosen providers would be lost.
    if (!validator().Check(value)) throw new Error('The stored state of the client is not valid. Restore or delete it.');
    this.#state = value;
  }

  get hasSeenReal(): boolean {
    return this.#loaded.has_seen_real;
  }

  get log(): string | null {
    return this.#loaded.log ?? null;
  }

  choiceOf(model: string): Choice | null {
    return this.#loaded.choices.find((choice) => choice.model === model) ?? null;
  }

  async setChoice(choice: Choice): Promise<void> {
    const others = this.#loaded.choices.filter(({ model }) => model !== choice.model);
    await this.#save({ ...this.#loaded, choices: [...others, choice].slice(-MAX_MODELS) });
  }

  async setSeenReal(): Promise<void> {
    if (!this.hasSeenReal) await this.#save({ ...this.#loaded, has_seen_real: true });
  }

  async setLog(log: string): Promise<void> {
    if (log !== this.log) await this.#save({ ...this.#loaded, log });
  }

  async #save(state: State): Promise<void> {
    this.#state = state;
    // Writes one after the other, so that the newest state is stored last.
    this.#saved = this.#saved.catch(() => {}).then(() => this.#store.save(JSON.stringify(state)));
    await this.#saved;
  }

  get #loaded(): State {
    if (this.#state === null) throw new Error('the state is not loaded');
    return this.#state;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
