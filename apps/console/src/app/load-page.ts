/**
 * `loadPage`: loads the JavaScript module of a page.
 *
 * After a deployment, an open tab requests modules that no longer exist. `loadPage` then reloads the whole document, once.
 */
import { DisplayableError } from '../ui/feedback/displayable-error.js';

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

/** Browser functions, which tests replace. */
interface Browser {
  readonly isOnline: () => boolean;
  readonly reload: () => void;
  /** Storage of this tab, which survives a reload. */
  readonly storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
}

/** Storage key of the route for which the document was reloaded. */
const RELOADED_KEY = 'reloaded-for-page';

/**
 * @param path Route pattern of the page.
 * @throws PageLoadError if the module cannot be loaded, and the browser is offline or the document was already reloaded for this page.
 */
export async function loadPage<Module>(path: string, load: () => Promise<Module>, browser: Browser = thisBrowser): Promise<Module> {
  try {
    const module = await load();
    browser.storage.removeItem(RELOADED_KEY);
    return module;
  } catch {
    if (!browser.isOnline() || browser.storage.getItem(RELOADED_KEY) === path) throw new PageLoadError(browser.isOnline());
    browser.storage.setItem(RELOADED_KEY, path);
    browser.reload();
    // Never settles, so that the placeholder stays until the reload.
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
