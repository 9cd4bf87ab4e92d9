/**
 * Loads the module of a page. After a release, modules of the previous one no longer exist: the document is then loaded again, once,
 * at the new address. Otherwise throws {@link PageLoadError}.
 */
import { DisplayableError } from '../ui/feedback/displayable-error.js';

/** The module of a page could not be fetched. */
export class PageLoadError extends DisplayableError {
  override readonly displayText: string;
  override readonly supportId = null;
  constructor(isOnline: boolean) {
    super('the module of a page could not be fetched');
    this.name = 'PageLoadError';
    this.displayText = isOnline
      ? 'The server did not deliver this page. It may be restarting; try again in a moment.'
      : 'You are offline. Check your internet connection, then try again.';
  }
}

interface Browser {
  readonly isOnline: () => boolean;
  /** Loads the document again. */
  readonly reload: () => void;
  /** Storage of this tab, which survives a reload. */
  readonly storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
}

const RELOADED = 'reloaded-for-page';

/** `path`: path of the page, which is reloaded at most once until a load succeeds. */
export async function loadPage<Module>(path: string, load: () => Promise<Module>, browser: Browser = thisBrowser): Promise<Module> {
  try {
    const module = await load();
    browser.storage.removeItem(RELOADED);
    return module;
  } catch {
    if (!browser.isOnline() || browser.storage.getItem(RELOADED) === path) throw new PageLoadError(browser.isOnline());
    browser.storage.setItem(RELOADED, path);
    browser.reload();
    // The placeholder stays until the document is replaced.
    return new Promise<never>(() => {});
  }
}

const thisBrowser: Browser = {
  isOnline: () => navigator.onLine,
  reload: () => window.location.reload(),
  get storage() {
    return window.sessionStorage;
  },
};
