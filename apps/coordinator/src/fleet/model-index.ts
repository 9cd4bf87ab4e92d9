/** Which sessions offer which model. Kept up to date as providers come, change their lists and go. */
import type { ModelOffer } from '@inference/protocol';
import type { OnlineSession } from './provider-session.js';

export class ModelIndex {
  readonly #sessions = new Map<string, Set<OnlineSession>>();
  readonly #indexed = new Map<OnlineSession, readonly ModelOffer[]>();

  /** Takes in a session's present list. Cheap when it has not changed. */
  update(session: OnlineSession): void {
    if (this.#indexed.get(session) === session.models) return;
    this.remove(session);
    this.#indexed.set(session, session.models);
    for (const { id } of session.models) {
      const offering = this.#sessions.get(id);
      if (offering === undefined) this.#sessions.set(id, new Set([session]));
      else offering.add(session);
    }
  }

  remove(session: OnlineSession): void {
    for (const { id } of this.#indexed.get(session) ?? []) {
      const offering = this.#sessions.get(id);
      offering?.delete(session);
      if (offering?.size === 0) this.#sessions.delete(id);
    }
    this.#indexed.delete(session);
  }

  offering(model: string): Iterable<OnlineSession> {
    return this.#sessions.get(model) ?? [];
  }

  models(): Iterable<[string, ReadonlySet<OnlineSession>]> {
    return this.#sessions;
  }
}
