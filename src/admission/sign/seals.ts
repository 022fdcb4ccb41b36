import { sameText, type Keyring } from '../../core/hmac.js';

/** Maximum length of a sealed text. The id of a key has at most 64 characters, and the rest is numbers. */
const SEALED_LENGTH_MAX = 512;

/** Length of the random value that decides a draw. 100,000 buyers have two equal lots in one sale out of 50,000. */
const LOT_BYTES = 6;

/** The purpose, so a seal is valid for nothing else, and facts that both sides know anyway. */
export interface SealOf {
  readonly kind: 'purchase-token' | 'queue-place' | 'queue-pass' | 'queue-lot';
  readonly saleId: string;
  readonly userId: string;
}

/**
 * Issues short texts that we accept when shown again: `<keyId>.<field>.<field>.<HMAC>`. Buyer and sale are in the HMAC
 * but not in the text, which is worthless to other buyers. Nothing is stored; every process with the keys accepts it.
 */
export class Seals {
  readonly #keys: Keyring;
  readonly #first: string | undefined;

  /** @param keys the first seals, all are accepted, so keys can change. Without any, rules with seals are refused */
  constructor(keys: Keyring) {
    this.#keys = keys;
    [this.#first] = keys.keys();
  }

  /**
   * @param fields without dots
   * @throws RangeError without a key, or if the fields are too long
   */
  seal(what: SealOf, fields: readonly (string | number)[]): string {
    if (this.#first === undefined) throw new RangeError('no sealing key is set');
    const shown = [this.#first, ...fields].join('.');
    const sealed = `${shown}.${this.#mac(this.#first, what, shown)}`;
    if (sealed.length > SEALED_LENGTH_MAX) throw new RangeError('only a short text can be sealed');
    return sealed;
  }

  /** Returns the fields of a text with a valid seal. Null for any other text. */
  open(what: SealOf, text: string): readonly string[] | null {
    if (text.length > SEALED_LENGTH_MAX) return null;
    const end = text.lastIndexOf('.');
    if (end === -1) return null;
    const shown = text.slice(0, end);
    const [keyId = '', ...fields] = shown.split('.');
    const mac = this.#mac(keyId, what, shown);
    return mac !== null && sameText(mac, text.slice(end + 1)) ? fields : null;
  }

  /**
   * Returns the lot of a buyer in the waiting room of a sale, from 0 to below 1. The lot cannot be guessed, and is the
   * same in every process with the same first key.
   * @throws RangeError without a key
   */
  lot(saleId: string, userId: string): number {
    const mac = this.#mac(this.#first ?? '', { kind: 'queue-lot', saleId, userId }, '');
    if (mac === null) throw new RangeError('no sealing key is set, so no random value can be drawn');
    return Buffer.from(mac, 'base64url').readUIntBE(0, LOT_BYTES) / 2 ** (8 * LOT_BYTES);
  }

  /** Null if the key does not exist. */
  #mac(keyId: string, { kind, saleId, userId }: SealOf, shown: string): string | null {
    const key = this.#keys.get(keyId);
    // No part contains a dot, so text cannot move between parts.
    return key === undefined ? null : key.sign(`${kind}.${saleId}.${withoutDots(userId)}.${shown}`);
  }
}

/** Escapes the dots of a user id. Ids without a dot or a percent sign stay unchanged, and so do their seals. */
const withoutDots = (userId: string): string => userId.replace(/[%.]/g, (sign) => (sign === '.' ? '%2E' : '%25'));
