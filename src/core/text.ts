import { isUtf8 } from 'node:buffer';

// Text from outside must be whole Unicode, or it is refused on arrival. A store that is stricter than JavaScript would
// refuse it later, together with the rest of its batch. `parseJson` and `metadataFault` hold JSON to the same rule.

/** The character that decoders, such as Node for arguments, insert for bytes that are not UTF-8. */
const REPLACEMENT = '\ufffd';

/** Decodes UTF-8 bytes, byte order mark included. Null for other bytes, because decoding would change them. */
export function utf8Of(bytes: Buffer): string | null {
  const text = bytes.toString();
  return text.includes(REPLACEMENT) && !isUtf8(bytes) ? null : text; // any other body needs no second check
}

/**
 * Says whether a text is whole: it has neither half of a surrogate pair, nor the trace of bytes that were not UTF-8.
 */
export const isWhole = (text: string): boolean => text.isWellFormed() && !text.includes(REPLACEMENT);

/** Starts a text with a capital letter and ends it with a full stop, unless it ends a sentence already. */
export const sentence = (text: string): string =>
  `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? '' : '.'}`;

export const withoutPoint = (text: string): string => text.replace(/\.$/, '');
