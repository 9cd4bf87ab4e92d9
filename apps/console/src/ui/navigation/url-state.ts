/** Selections stored in the URL, so that a view can be linked. */
import { useSearchParams } from 'wouter';

/** Value of a search parameter if allowed, else the first allowed value. Setting a value replaces the history entry. */
export function useUrlChoice<Value extends string>(name: string, allowed: readonly [Value, ...Value[]]): [Value, (value: Value) => void] {
  const [text, setText] = useUrlText(name);
  const value = allowed.find((one) => one === text) ?? allowed[0];
  return [value, (next) => setText(next === allowed[0] ? '' : next)];
}

/** Text of a search parameter; empty if absent. */
export function useUrlText(name: string): [string, (value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const set = (value: string): void =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        if (value === '') next.delete(name);
        else next.set(name, value);
        return next;
      },
      { replace: true },
    );
  return [search.get(name) ?? '', set];
}
