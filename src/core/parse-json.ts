/** The value of a JSON text of whole characters, or a sentence that says where the text goes wrong. */
export type ParsedJson = { readonly value: unknown } | { readonly error: string };

/** @param what the subject of the sentence: `The body` */
export function parseJson(text: string, what: string): ParsedJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { error: `${what} is not JSON: ${placeOf(text)}.` };
  }
  return holdsHalf(text) ? { error: `${what} ${HALF_CHARACTER}.` } : { value };
}

/** Predicate for a text that was cut by JavaScript inside a character: `'🖋'.slice(0, 1)`. */
export const HALF_CHARACTER = 'holds half of a character (an unpaired surrogate); split texts only between characters';

/** An escaped pair; one escaped half, as the group; or any other escape. */
const ESCAPE = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|\\./g;

/** @param text valid JSON. Read as text instead of its value, which may be nested deeper than the call stack. */
function holdsHalf(text: string): boolean {
  if (!text.isWellFormed()) return true;
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  for (const [, half] of text.matchAll(ESCAPE)) if (half !== undefined) return true;
  return false;
}

/** Returns the value of a JSON text. Null for any other text. */
export const jsonOrNull = (text: string): unknown => jsonOr(null, text);

/** Returns the value of a JSON text. Any other text, written by hand, is returned as it is. */
export const jsonOrText = (text: string): unknown => jsonOr(text, text);

function jsonOr(other: string | null, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return other;
  }
}

/** JSON tokens and the space before them. An unfinished string is not a token, so it ends the search. */
const TOKEN =
  /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/y;

/**
 * Finds the place where JSON.parse must have stopped. Its own message has a position in some versions of Node only, so
 * the text is read again; that costs time for a refused text only. Own code, because the scanner of jsonc-parser is
 * tolerant: its first error may be elsewhere.
 */
function placeOf(text: string): string {
  const open: string[] = [];
  let expects: 'value' | 'value_or_end' | 'key' | 'key_or_end' | 'colon' | 'comma' | 'nothing' = 'value';
  const afterValue = (): typeof expects => (open.length === 0 ? 'nothing' : 'comma');
  TOKEN.lastIndex = 0;
  let end = 0;
  let token = TOKEN.exec(text);
  for (; token !== null; token = TOKEN.exec(text)) {
    const [, mark, string] = token;
    const wantsValue = expects === 'value' || expects === 'value_or_end';
    const wantsKey = expects === 'key' || expects === 'key_or_end';
    if ((mark === '{' || mark === '[') && wantsValue) {
      open.push(mark);
      expects = mark === '{' ? 'key_or_end' : 'value_or_end';
    } else if (mark === '}' && open.at(-1) === '{' && (expects === 'comma' || expects === 'key_or_end')) {
      open.pop();
      expects = afterValue();
    } else if (mark === ']' && open.at(-1) === '[' && (expects === 'comma' || expects === 'value_or_end')) {
      open.pop();
      expects = afterValue();
    } else if (mark === ',' && expects === 'comma') {
      expects = open.at(-1) === '{' ? 'key' : 'value';
    } else if (mark === ':' && expects === 'colon') {
      expects = 'value';
    } else if (mark === undefined && string !== undefined && wantsKey) {
      expects = 'colon';
    } else if (mark === undefined && wantsValue) {
      expects = afterValue();
    } else {
      break;
    }
    end = TOKEN.lastIndex;
  }
  const rest = /^[ \t\n\r]*/.exec(text.slice(end));
  const at = end + (rest?.[0].length ?? 0);
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  const column = at - before.lastIndexOf('\n');
  const found = text[at];
  if (found === undefined)
    return text.trim() === '' ? 'it is empty' : `it ends too early, at line ${line}, column ${column}`;
  if (found === '"' && token === null)
    return `the string at line ${line}, column ${column} does not end, or holds a bad character`;
  return `unexpected ${JSON.stringify(String.fromCodePoint(text.codePointAt(at) as number))} at line ${line}, column ${column}`;
}
