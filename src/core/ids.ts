/** Ids that need no quoting in a Redis key, a log line or a URL. They contain no character of a hash tag or a path. */
export const ID = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * The user in a token, as identity providers choose it (`auth0|507f`, `a@b.com`, `urn:x:1`). No blank: MySQL ignores
 * blanks at the end and would find the same user.
 */
export const USER_ID = /^[!-~]{1,128}$/;

/** Claim `jti`. A token with a longer `jti` can be revoked only with all tokens of its user. */
export const TOKEN_ID = /^[!-~]{1,128}$/;

/** Characters of providers' payment ids that need no quoting in a URL and form no `..` in a path. */
export const PAYMENT_ID = /^[A-Za-z0-9_-][A-Za-z0-9._:~=+-]{0,63}$/;

/** Number of a sale in MySQL (BIGINT). Outside MySQL it is a decimal string. */
export const SALE_ID = /^[1-9][0-9]{0,17}$/;

/** A 64-bit number (order-id.ts), written as text, because JSON numbers are exact only up to 2^53. */
export const ORDER_ID = /^[1-9][0-9]{0,18}$/;

export const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value);
export const isUserId = (value: unknown): value is string => typeof value === 'string' && USER_ID.test(value);
export const isTokenId = (value: unknown): value is string => typeof value === 'string' && TOKEN_ID.test(value);
export const isPaymentId = (value: unknown): value is string => typeof value === 'string' && PAYMENT_ID.test(value);
export const isSaleId = (value: unknown): value is string => typeof value === 'string' && SALE_ID.test(value);
export const isOrderId = (value: unknown): value is string => typeof value === 'string' && ORDER_ID.test(value);

/** Compares by value, without leading zeros: the shorter id is smaller. Rows of sales are locked in this order. */
export const compareIds = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
