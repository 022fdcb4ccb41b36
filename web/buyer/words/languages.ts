import type { Words } from './words.js';

/**
 * A language that the page speaks. Its words are in a separate file, so no browser loads the words of an unused
 * language.
 */
export interface Language {
  readonly lang: string;
  /** Name of the language, in that language. */
  readonly name: string;
  /** @throws if its file cannot be loaded */
  load(): Promise<Words>;
}

const ENGLISH: Language = { lang: 'en', name: 'English', load: async () => (await import('./en.js')).en };
const CHINESE: Language = { lang: 'zh-CN', name: '中文', load: async () => (await import('./zh.js')).zh };
export const LANGUAGES = [ENGLISH, CHINESE] as const;

/** @param wanted as named by a browser or a link: `zh`, `zh-TW`, `en-GB` */
export const languageOf = (wanted: string): Language =>
  LANGUAGES.find(({ lang }) => wanted.slice(0, 2).toLowerCase() === lang.slice(0, 2)) ?? ENGLISH;
