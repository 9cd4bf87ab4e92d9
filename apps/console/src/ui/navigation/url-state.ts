/** Choices that stand in the address, so that a page can be linked to as it is shown. */
import { useSearchParams } from 'wouter';

/** The value of a parameter, when it is one of those allowed; else the first. Setting it replaces the address without a new entry. */
export function useUrlChoice<Value extends string>(name: string, allowed: readonly [Value, ...Value[]]): [Value, (value: Value) => void] {
  const [text, setText] = useUrlText(name);
  const value = allowed.find((one) => one === text) ?? allowed[0];
  return [value, (next) => setText(next === allowed[0] ? '' : next)];
}

/** The text of a parameter; empty when it is not there. */
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
