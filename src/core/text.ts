import { isUtf8 } from 'node:buffer';

// Text from outside must be whole Unicode. Otherwise a store that is stricter than JavaScript would refuse it later,
// with the rest of its batch. `parseJson` and `metadataFault` apply the rule to JSON.

/** The character that decoders insert in place of bytes that are not UTF-8. Node does so for command line arguments. */
const REPLACEMENT = '\ufffd';

/** Decodes UTF-8 bytes, including a byte order mark. Null for any other bytes, because decoding would change them. */
export function utf8Of(bytes: Buffer): string | null {
  const text = bytes.toString();
  return text.includes(REPLACEMENT) && !isUtf8(bytes) ? null : text; // a body without it needs no second check
}

/** Whether a text has neither half of a surrogate pair nor a trace of bytes that were not UTF-8. */
export const isWhole = (text: string): boolean => text.isWellFormed() && !text.includes(REPLACEMENT);

/** Starts a text with a capital letter and ends it with a full stop, unless it ends a sentence already. */
export const sentence = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`;

export const withoutPoint = (text: string): string => text.replace(/\.$/, '');
