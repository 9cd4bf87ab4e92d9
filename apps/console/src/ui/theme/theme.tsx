/** `ThemeProvider` and `useTheme`: light or dark theme, by the user's choice in local storage, else by the system setting. */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';

export type Theme = 'light' | 'dark';
export type ThemeChoice = Theme | 'system';

interface ThemeState {
  readonly choice: ThemeChoice;
  /** Theme in effect. */
  readonly theme: Theme;
  readonly choose: (choice: ThemeChoice) => void;
}

const DARK = '(prefers-color-scheme: dark)';
const STORAGE_KEY = 'theme';
const ThemeContext = createContext<ThemeState | null>(null);

export function ThemeProvider({ children }: { readonly children: ReactNode }) {
  const [choice, setChoice] = useState<ThemeChoice>(readChoice);
  const [systemIsDark, setSystemIsDark] = useState(() => matchMedia(DARK).matches);
  useEffect(() => {
    const query = matchMedia(DARK);
    const follow = (): void => setSystemIsDark(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, []);
  const state = useMemo((): ThemeState => {
    const choose = (next: ThemeChoice): void => {
      applyAndStore(next);
      setChoice(next);
    };
    return { choice, theme: choice === 'system' ? (systemIsDark ? 'dark' : 'light') : choice, choose };
  }, [choice, systemIsDark]);
  return <ThemeContext value={state}>{children}</ThemeContext>;
}

export function useTheme(): ThemeState {
  const state = useContext(ThemeContext);
  if (state === null) throw new Error('useTheme requires a ThemeProvider');
  return state;
}

/** Before the first paint, `public/first-paint.js` copied the choice from local storage to `data-theme`. */
function readChoice(): ThemeChoice {
  const { theme } = document.documentElement.dataset;
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

function applyAndStore(choice: ThemeChoice): void {
  const { dataset } = document.documentElement;
  if (choice === 'system') delete dataset.theme;
  else dataset.theme = choice;
  try {
    if (choice === 'system') localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, choice);
  } catch {
    // The browser may forbid storage. The choice then lasts until a reload.
  }
}
