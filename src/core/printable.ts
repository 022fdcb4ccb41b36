// Stored text comes from outside: it must neither control a terminal nor look like one of our lines.

/** Escapes control characters, direction marks and the like as JSON does: JSON keeps its value. Keeps line breaks. */
export const printable = (text: string): string => text.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, escaped);
/** Escapes line breaks too. */
export const inLine = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);

const escaped = (found: string): string =>
  Array.from({ length: found.length }, (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
