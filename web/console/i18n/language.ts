import type { en } from './en.js';

/** The texts of the console in one language. A key that a dictionary lacks does not compile. */
export type Dictionary = typeof en;

export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

/** As each is called by those who speak it. */
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = { en: 'English', zh: '中文' };

/** The language for somebody who reads these, the best first; English for all others. */
export function languageFor(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const known = LANGUAGES.find((language) => tag.toLowerCase().split('-')[0] === language);
    if (known !== undefined) return known;
  }
  return 'en';
}

/** How numbers and times are written: as where the reader lives, if they read the language there. */
export function localeFor(language: Language, preferred: readonly string[]): string {
  const fallback = { en: 'en-GB', zh: 'zh-CN' } as const;
  return (
    preferred.find(
      (tag) => languageFor([tag]) === language && tag.toLowerCase().startsWith(language) && tag.includes('-'),
    ) ?? fallback[language]
  );
}

/** The text of a word of the api, or the word itself where there is none. */
export const wordIn = (words: Readonly<Record<string, string>>, word: string): string => words[word] ?? word;
