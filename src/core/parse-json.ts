import { printParseErrorCode, visit, type JSONVisitor } from 'jsonc-parser';

/** @param what the subject of the sentence, such as `The body` */
export function parseJson(text: string, what: string): { readonly value: unknown } | { readonly error: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { error: `${what} is not JSON: ${placeOf(text)}.` };
  }
  return holdsHalf(text) ? { error: `${what} ${HALF_CHARACTER}.` } : { value };
}

/** Predicate for a text cut inside a character, as in `'🖋'.slice(0, 1)`. */
export const HALF_CHARACTER =
  'contains half a character (an unpaired surrogate); split strings only between characters';

/** Matches an escaped pair, or a single escaped half (as the group), or any other escape. */
const ESCAPE = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|\\./g;

/** @param text valid JSON, checked as text, because its value may be nested deeper than the call stack */
function holdsHalf(text: string): boolean {
  if (!text.isWellFormed()) return true;
  if (!text.includes('\\u')) return false;
  for (const [, half] of text.matchAll(ESCAPE)) if (half !== undefined) return true;
  return false;
}

export const jsonOrNull = (text: string): unknown => jsonOr(null, text);

/** Returns the value of a JSON text. Returns any other text, such as one written by hand, unchanged. */
export const jsonOrText = (text: string): unknown => jsonOr(text, text);

function jsonOr(other: string | null, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return other;
  }
}

/** Mistakes for which jsonc-parser reports the start of the string. */
const IN_STRING = new Set(['UnexpectedEndOfString', 'InvalidUnicode', 'InvalidEscapeCharacter', 'InvalidCharacter']);

/** Returns where JSON.parse stopped. Only some versions of Node name the place, so the text is read again. */
function placeOf(text: string): string {
  const places: string[] = [];
  visitJson(text, {
    onError(code, offset, _length, line, column) {
      if (places.length > 0) return;
      const place = `line ${line + 1}, column ${column + 1}`;
      const found = text.codePointAt(offset);
      if (found === undefined) places.push(text.trim() === '' ? 'it is empty' : `it ends too early, at ${place}`);
      else if (IN_STRING.has(printParseErrorCode(code)))
        places.push(`the string at ${place} does not end, or holds a bad character`);
      else places.push(`unexpected ${JSON.stringify(String.fromCodePoint(found))} at ${place}`);
    },
  });
  return places[0] ?? 'it is nested too deeply';
}

/** Visits the parts of a JSON text, up to a value that is nested deeper than the call stack. */
export function visitJson(text: string, visitor: JSONVisitor): void {
  try {
    visit(text, visitor, { disallowComments: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
}
