import { languageFor, LANGUAGES, type Language } from '../i18n/language.js';
import { Store } from '../logic/store.js';

/** Choices of the user in this browser. The token is not among them: see api/session.ts. */
const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEYS = { theme: 'seckill.console.theme', language: 'seckill.console.language', keys: 'seckill.console.keys' };

/** Uses the storage if allowed. If a browser forbids storage, a choice lasts as long as the page. */
function whereAllowed<T>(use: (storage: Storage) => T): T | null {
  try {
    return use(localStorage);
  } catch {
    return null;
  }
}

function chosen<W extends string>(key: string, words: readonly W[]): W | undefined {
  const kept = whereAllowed((storage) => storage.getItem(key));
  return words.find((word) => word === kept);
}
const keep = (key: string, word: string): void => void whereAllowed((storage) => storage.setItem(key, word));

export const theme = new Store<Theme>(chosen(KEYS.theme, THEMES) ?? 'system');
export const language = new Store<Language>(chosen(KEYS.language, LANGUAGES) ?? languageFor(navigator.languages));
/** True if single keys are shortcuts. */
export const singleKeys = new Store<boolean>(chosen(KEYS.keys, ['off']) === undefined);

/** Stores the choices, and applies them to the page. */
export function applyPreferences(): void {
  const root = document.documentElement;
  const apply = (): void => {
    root.lang = language.value === 'zh' ? 'zh-CN' : 'en';
    if (theme.value === 'system') delete root.dataset.theme;
    else root.dataset.theme = theme.value;
  };
  apply();
  theme.subscribe(() => keep(KEYS.theme, theme.value));
  language.subscribe(() => keep(KEYS.language, language.value));
  singleKeys.subscribe(() => keep(KEYS.keys, singleKeys.value ? 'on' : 'off'));
  for (const store of [theme, language]) store.subscribe(apply);
}

export const nextTheme = (): void => theme.set(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? 'system');
