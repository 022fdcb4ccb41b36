import type { en } from './en.js';

/** The texts of the console in a language. A dictionary that lacks a key does not compile. */
export type Dictionary = typeof en;

export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

/** Names of the languages, each in its own language. */
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = { en: 'English', zh: '中文' };

/** Returns the language for a user with these preferences, most preferred first. Default: English. */
export function languageFor(preferred: readonly string[]): Language {
  for (const tag of preferred) {
    const known = LANGUAGES.find((language) => tag.toLowerCase().split('-')[0] === language);
    if (known !== undefined) return known;
  }
  return 'en';
}

/** Returns the locale for numbers and times: that of the reader's country, if the reader uses the language there. */
export function localeFor(language: Language, preferred: readonly string[]): string {
  const fallback = { en: 'en-GB', zh: 'zh-CN' } as const;
  return (
    preferred.find(
      (tag) => languageFor([tag]) === language && tag.toLowerCase().startsWith(language) && tag.includes('-'),
    ) ?? fallback[language]
  );
}

/** Returns the text for a word of the API, or the word itself if there is no text. */
export const wordIn = (words: Readonly<Record<string, string>>, word: string): string => words[word] ?? word;
