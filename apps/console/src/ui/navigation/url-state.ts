/** Hooks for state in the query of the URL, so that a view of a page can be linked. */
import { useSearchParams } from 'wouter';

/** State of a query parameter with a fixed set of values. Default: the first of `allowed`. Changes replace the history entry. */
export function useUrlChoice<Value extends string>(name: string, allowed: readonly [Value, ...Value[]]): [Value, (value: Value) => void] {
  const [text, setText] = useUrlText(name);
  const value = allowed.find((one) => one === text) ?? allowed[0];
  return [value, (next) => setText(next === allowed[0] ? '' : next)];
}

/** State of a query parameter with any text, empty if the parameter is absent. Changes replace the history entry. */
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
