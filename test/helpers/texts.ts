import fc from 'fast-check';
import { METADATA_NAME, metadataFault, type Metadata } from '../../src/core/metadata.js';

/** Text that causes trouble in stores and on screens: controls, marks, quotes, halves of a pair, whole pairs. */
const AWKWARD = ['\0', '\x1b', '\x7f', '\u009b', '\u202e', '\u2028', '\ufeff', '\uffff', '"', '\\', '\ud83d', '\udd8b'];

/** Generates any UTF-16 units, whole characters or not. */
export const unitTexts = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({
    unit: fc.oneof(
      fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)),
      fc.constantFrom(...AWKWARD, '🖋', '👩‍👧', 'é'),
    ),
    maxLength,
  });

/** Generates any metadata that a caller may send, up to its limit in bytes, never empty. */
export const metadatas: fc.Arbitrary<Metadata> = fc
  .oneof(
    fc.dictionary(fc.stringMatching(METADATA_NAME), unitTexts(40), { minKeys: 1, maxKeys: 5 }),
    fc.record({ a: unitTexts(250) }),
    fc.constantFrom('x', '\0', 'é', '🖋', '"').map((one) => ({ a: filled(one) })),
  )
  .filter((metadata) => metadataFault(metadata) === null);

/** Repeats a character to the size limit of metadata. */
function filled(one: string): string {
  let text = one;
  while (metadataFault({ a: text + one }) === null) text += one;
  return text;
}
