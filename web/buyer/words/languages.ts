import type { Words } from './words.js';

/** A language that the page speaks. Its words are a file of their own: nobody loads those of a language that they do not read. */
export interface Language {
  readonly lang: string;
  /** In itself. */
  readonly name: string;
  /** @throws where its file cannot be had */
  load(): Promise<Words>;
}

const ENGLISH: Language = { lang: 'en', name: 'English', load: async () => (await import('./en.js')).en };
const CHINESE: Language = { lang: 'zh-CN', name: '中文', load: async () => (await import('./zh.js')).zh };
export const LANGUAGES = [ENGLISH, CHINESE] as const;

/** @param wanted as a browser or a link names it: `zh`, `zh-TW`, `en-GB` */
export const languageOf = (wanted: string): Language =>
  LANGUAGES.find(({ lang }) => wanted.slice(0, 2).toLowerCase() === lang.slice(0, 2)) ?? ENGLISH;
