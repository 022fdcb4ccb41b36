import { isUtf8 } from 'node:buffer';

// Text from outside is whole Unicode or it is refused where it comes in. A store that is stricter than JavaScript would
// refuse it later, together with whatever shares its batch. `parseJson` and `metadataFault` hold JSON to the same rule.

/** Bytes as text, byte order mark included. Null if they are not UTF-8: nobody wrote what they would be read as. */
export const utf8Of = (bytes: Buffer): string | null => (isUtf8(bytes) ? bytes.toString() : null);

/** Bytes that were not UTF-8 become this character when something else decodes them, such as Node for arguments. */
const REPLACEMENT = '\ufffd';

/** Whether a text is whole: neither half of a surrogate pair, nor what a decoder leaves of bytes that were not UTF-8. */
export const isWhole = (text: string): boolean => text.isWellFormed() && !text.includes(REPLACEMENT);
