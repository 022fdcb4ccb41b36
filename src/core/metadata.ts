import { HALF_CHARACTER } from './parse-json.js';

/**
 * A note that the caller attaches to a purchase, such as `{"cart": "42"}`. The order and its events carry it, and none
 * of our programs evaluates it. It has at least one name; a purchase without a note has no metadata at all.
 */
export type Metadata = Readonly<Record<string, string>>;

/**
 * Maximum size of the JSON, in UTF-8 bytes. Every copy of a batch carries the metadata, and Redis holds it until the
 * order is written.
 */
export const METADATA_BYTES_MAX = 512;
/**
 * A name begins with a letter. This excludes `__proto__`, and numbers, which JavaScript would move to the front of an
 * object.
 */
export const METADATA_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,39}$/;

/**
 * Returns what is wrong with metadata from outside, or null. An object without names is valid and counts as no
 * metadata.
 */
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

/** Checks the metadata of a message, which is never empty. */
export const isMetadata = (value: unknown): value is Metadata =>
  metadataFault(value) === null && Object.keys(value as object).length > 0;
