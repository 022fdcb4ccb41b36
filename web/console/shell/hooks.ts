import { createContext } from 'preact';
import { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { apiErrorOf, type ApiError } from '../api/api-error.js';
import type { Api, Query } from '../api/client.js';
import type { Me } from '../api/types.js';
import { en } from '../i18n/en.js';
import { localeFor, type Dictionary } from '../i18n/language.js';
import { zh } from '../i18n/zh.js';
import { createFormat, type Format } from '../logic/format.js';
import type { LiveStore } from '../logic/live-store.js';
import { filterIn, queryOf, type Filter } from '../logic/query.js';
import { Store } from '../logic/store.js';
import { language } from './preferences.js';

/** Objects that every screen can use. */
export interface App {
  readonly api: Api;
  readonly live: LiveStore;
  readonly me: Me;
}

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
  const app = useContext(AppContext);
  if (app === null) throw new Error('there is nobody signed in');
  return app;
}

/** Returns the value of a store, and renders again whenever it changes. */
export function useStore<T>(store: Store<T>): T {
  const [, draw] = useState({});
  const { value } = store;
  useLayoutEffect(() => {
    if (!Object.is(store.value, value)) draw({}); // the value changed between rendering and subscribing
    return store.subscribe(() => draw({}));
  }, [store]);
  return value;
}

const DICTIONARIES = { en, zh } as const;
const formats = new Map<string, Format>();

/** Returns the texts and the number format of the chosen language. */
export function useWords(): { readonly t: Dictionary; readonly f: Format } {
  const chosen = useStore(language);
  const locale = localeFor(chosen, navigator.languages);
  const f = formats.get(locale) ?? createFormat(locale);
  formats.set(locale, f);
  return { t: DICTIONARIES[chosen], f };
}

/** A single clock for everything that counts, because ages would otherwise tick out of step. */
const second = new Store(Date.now());
setInterval(() => second.set(Date.now()), 1_000);

/** Unix ms, updated every second. */
export const useNow = (): number => useStore(second);

/**
 * Returns the clock of the API, Unix ms, as known from its newest snapshot. Uses the browser's clock before the first
 * snapshot.
 */
export function serverNowMs({ state }: LiveStore): number {
  const { snapshot, receivedMs } = state.value;
  return snapshot === null ? Date.now() : snapshot.atMs + performance.now() - receivedMs;
}

const address = new Store(location.pathname + location.search);
addEventListener('popstate', () => address.set(location.pathname + location.search));

export function navigate(to: string): void {
  if (to === address.value) return;
  history.pushState(null, '', to);
  address.set(to);
  scrollTo(0, 0);
}

export function useAddress(): { readonly path: string; readonly search: string } {
  const [path = '', search = ''] = useStore(address).split('?');
  return { path, search };
}

/** Keeps the filter of a list in the address, so that it can be shared and survives a reload. */
export function useFilter<N extends string>(
  names: readonly N[],
): [Record<N, string>, (changes: Partial<Record<N, string>>) => void] {
  const { path, search } = useAddress();
  const filter = useMemo(() => filterIn(search, names), [search]);
  const change = (changes: Partial<Record<N, string>>): void => {
    const to = path + queryOf({ ...filter, ...changes } as Filter);
    if (to === address.value) return;
    history.replaceState(null, '', to);
    address.set(to);
  };
  return [filter, change];
}

export interface Resource<T> {
  /** The newest data, even while it is being read again or cannot be read. */
  readonly data: T | null;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  /** When `data` was read, Unix ms. */
  readonly readAtMs: number;
  readonly reload: () => void;
}

/** Changes when all data should be read again: after the key `r`, and after a new sign-in. */
export const readAgain = new Store(0);

/**
 * Reads from the API, and repeats the read at an interval.
 * @param path null: reads nothing
 * @param everyMs absent: reads once; nothing is read while the page is hidden
 * @param takes statuses that count as an answer, not as a failure
 */
export function useResource<T>(
  path: string | null,
  {
    query = {},
    everyMs,
    takes = [],
  }: { readonly query?: Query; readonly everyMs?: number; readonly takes?: readonly number[] } = {},
): Resource<T> {
  const { api } = useApp();
  const again = useStore(readAgain);
  const key = path === null ? null : path + queryOf(query);
  const [state, setState] = useState<{
    key: string | null;
    data: T | null;
    error: ApiError | null;
    readAtMs: number;
    isLoading: boolean;
  }>({
    key,
    data: null,
    error: null,
    readAtMs: 0,
    isLoading: key !== null,
  });
  const [asked, setAsked] = useState(0);
  const reload = useCallback(() => setAsked((count) => count + 1), []);

  useEffect(() => {
    if (key === null) return undefined;
    const ending = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      setState((before) =>
        before.key === key
          ? { ...before, isLoading: true }
          : { key, data: null, error: null, readAtMs: 0, isLoading: true },
      );
      try {
        const data = await api.ask<T>(key, { signal: ending.signal, takes });
        if (!ending.signal.aborted) setState({ key, data, error: null, readAtMs: Date.now(), isLoading: false });
      } catch (error) {
        if (ending.signal.aborted) return;
        setState((before) => ({ ...before, key, error: apiErrorOf(error), isLoading: false }));
      }
      if (everyMs !== undefined && !ending.signal.aborted) timer = setTimeout(next, everyMs);
    };
    const next = (): void => {
      if (document.hidden) timer = setTimeout(next, everyMs);
      else void read();
    };
    void read();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [key, asked, again, everyMs, api]);

  const isOfKey = state.key === key;
  return {
    data: isOfKey ? state.data : null,
    error: isOfKey ? state.error : null,
    isLoading: isOfKey ? state.isLoading : key !== null,
    readAtMs: isOfKey ? state.readAtMs : 0,
    reload,
  };
}

export interface Pages<T> {
  readonly rows: readonly T[];
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly readAtMs: number;
  /** True if there are more rows. */
  readonly hasMore: boolean;
  readonly more: () => void;
  readonly reload: () => void;
  /** The same, as a `Table` takes it. */
  readonly list: {
    readonly rows: readonly T[];
    readonly error: ApiError | null;
    readonly isLoading: boolean;
    readonly hasMore: boolean;
    readonly onMore: () => void;
    readonly onRetry: () => void;
  };
}

/** Number of rows that the screen requests per page. */
const PAGE_ROWS = 100;
const FIRST_PAGE_EVERY_MS = 10_000;

interface PagesState<T> {
  /** Identifies the list and filter of the rows. */
  readonly key: string | null;
  readonly rows: readonly T[];
  /** Number of pages from which the rows come. */
  readonly pages: number;
  readonly next: string | null;
  readonly error: ApiError | null;
  readonly isLoading: boolean;
  readonly readAtMs: number;
}

/**
 * Reads a list of the API, page by page. While only the first page is shown, it is read again at an interval.
 * @param rows the field of an answer that holds the rows
 * @param place the parameter of the API that names where a page begins
 * @param isHeld true while the user works with the shown rows, which then stay as they are
 */
export function usePages<T>(
  path: string,
  query: Query,
  {
    rows: name,
    place,
    isHeld = false,
  }: { readonly rows: string; readonly place: 'after' | 'before'; readonly isHeld?: boolean },
): Pages<T> {
  const { api } = useApp();
  const again = useStore(readAgain);
  const key = path + queryOf({ ...query, limit: PAGE_ROWS });
  const [asked, setAsked] = useState(0);
  const nothing = { key, rows: [], pages: 0, next: null, error: null, isLoading: true, readAtMs: 0 };
  const [kept, setState] = useState<PagesState<T>>(nothing);
  const state = kept.key === key ? kept : nothing; // rows of another filter must not be shown
  const current = useRef<AbortController | null>(null);

  const load = async (from: string | null): Promise<void> => {
    current.current?.abort();
    const ending = new AbortController();
    current.current = ending;
    const change = (changes: Partial<PagesState<T>>): void =>
      setState((before) => ({ ...(before.key === key ? before : nothing), ...changes }));
    change({ isLoading: true });
    try {
      const answer = await api.ask<Readonly<Record<string, unknown>>>(path, {
        query: { ...query, limit: PAGE_ROWS, ...(from === null ? {} : { [place]: from }) },
        signal: ending.signal,
      });
      if (ending.signal.aborted) return;
      const [rows, next] = [answer[name] as readonly T[], (answer.next ?? null) as string | null];
      const shown = from === null ? { rows, pages: 1 } : { rows: [...state.rows, ...rows], pages: state.pages + 1 };
      change({ ...shown, next, error: null, isLoading: false, readAtMs: Date.now() });
    } catch (error) {
      if (ending.signal.aborted) return;
      change({ error: apiErrorOf(error), isLoading: false });
    }
  };
  useEffect(() => {
    void load(null);
    return () => current.current?.abort();
  }, [key, asked, again]);
  const isFollowed = !state.isLoading && !isHeld && state.pages <= 1;
  useEffect(() => {
    if (!isFollowed) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void load(null);
    }, FIRST_PAGE_EVERY_MS);
    return () => clearInterval(timer);
  }, [key, isFollowed]);

  const { rows, error, isLoading, readAtMs } = state;
  const hasMore = state.next !== null;
  const more = (): void => void load(state.next);
  const reload = (): void => setAsked((count) => count + 1);
  const list = { rows, error, isLoading, hasMore, onMore: more, onRetry: reload };
  return { rows, error, isLoading, readAtMs, hasMore, more, reload, list };
}
