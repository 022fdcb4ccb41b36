// What was stored came from elsewhere: it must not steer a terminal, nor look like a line of ours.

/** Controls, marks of direction and the like, as JSON escapes them: a line of JSON stays the same value. Not line breaks. */
export const printable = (text: string): string => text.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, escaped);
/** Line breaks too. */
export const inLine = (text: string): string => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escaped);

const escaped = (found: string): string =>
  Array.from({ length: found.length }, (_, at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
