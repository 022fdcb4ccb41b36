/** A possible meaning of a text in the search field. */
export type LookUp = { readonly kind: 'purchase' | 'user' | 'sale' | 'dead_letter' | 'message'; readonly text: string };

const ID = /^[A-Za-z0-9_-]{1,64}$/;
const USER_ID = /^[!-~]{1,128}$/;
const ROW_ID = /^[1-9][0-9]{0,17}$/;
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/i;

/** Cleans a pasted text: removes surrounding blanks and quotes, and takes the trace id from a `traceparent`. */
export function cleaned(text: string): string {
  const plain = text.trim().replace(/^["'`]+|["'`,;]+$/g, '');
  return TRACEPARENT.exec(plain)?.[1]?.toLowerCase() ?? plain;
}

/** Returns the possible meanings, the most likely first. Returns an empty list for a text that cannot be an id. */
export function lookUpsOf(typed: string): LookUp[] {
  const text = cleaned(typed);
  const found: LookUp[] = [];
  if (ID.test(text)) found.push({ kind: 'purchase', text });
  if (USER_ID.test(text)) found.push({ kind: 'user', text });
  if (ROW_ID.test(text)) found.push({ kind: 'sale', text }, { kind: 'dead_letter', text });
  if (ID.test(text)) found.push({ kind: 'message', text });
  return found;
}
