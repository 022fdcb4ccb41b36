/** Text that is JSON of whole characters, or a sentence that says where it stops being that. */
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

/** What is wrong with a text of which JavaScript was asked to keep a part: `'🖋'.slice(0, 1)`. */
export const HALF_CHARACTER = 'holds half of a character (an unpaired surrogate): cut texts between characters';

/** An escaped pair; one escaped half, as the group; or any other escape. */
const ESCAPE = /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(\\u[dD][89a-fA-F][\da-fA-F]{2})|\\./g;

/** @param text is JSON. Read as text and not as its value, which may be nested deeper than the call stack. */
function holdsHalf(text: string): boolean {
  if (!text.isWellFormed()) return true;
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  for (const [, half] of text.matchAll(ESCAPE)) if (half !== undefined) return true;
  return false;
}

/** What a text of JSON says; null for a text that is none. */
export const jsonOrNull = (text: string): unknown => jsonOr(null, text);

/** What a text of JSON says; a text that is none, written by hand, as it is. */
export const jsonOrText = (text: string): unknown => jsonOr(text, text);

function jsonOr(other: string | null, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return other;
  }
}

/** JSON tokens and the space before them. An unfinished string is no token, so it ends the search. */
const TOKEN =
  /[ \t\n\r]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-]))/y;

/**
 * Where JSON.parse must have stopped. Its own message has a position in some versions of Node only, so the text is read
 * again; that costs something only for a text that is refused. Own code, since the scanner of
 * jsonc-parser is tolerant: its first error need not stand where JSON.parse stopped.
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
