import { HALF_CHARACTER } from './parse-json.js';

/**
 * The caller's note on a purchase, such as `{"cart": "42"}`. The order and its events carry it, and no program
 * evaluates it. Has at least one name; a purchase without a note has no metadata.
 */
export type Metadata = Readonly<Record<string, string>>;

/** Maximum UTF-8 bytes of the JSON. Every copy of a batch carries it, and Redis until the order is written. */
export const METADATA_BYTES_MAX = 512;
/** Begins with a letter: not `__proto__`, and no number, which JavaScript would move to the front of an object. */
export const METADATA_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/;

/** Returns what is wrong with metadata from outside, or null. An object without names counts as none. */
export function metadataFault(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return 'metadata must be an object of strings, such as {"cart":"42"}.';
  }
  for (const [name, text] of Object.entries(value)) {
    const shown = JSON.stringify(name.slice(0, 40));
    if (!METADATA_NAME.test(name)) return `metadata has the name ${shown}; ${NAME_SHAPE}`;
    if (typeof text !== 'string') return `metadata must be an object of strings, but ${shown} is not a string.`;
    if (!text.isWellFormed()) return `metadata ${shown} ${HALF_CHARACTER}.`;
  }
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > METADATA_BYTES_MAX
    ? `metadata must have at most ${METADATA_BYTES_MAX} bytes as JSON, not ${bytes}.`
    : null;
}

const NAME_SHAPE = 'a name begins with a letter and has up to 40 of the characters A-Z a-z 0-9 _ . -';

/** In a message, metadata is never empty. */
export const isMetadata = (value: unknown): value is Metadata =>
  metadataFault(value) === null && Object.keys(value as object).length > 0;
