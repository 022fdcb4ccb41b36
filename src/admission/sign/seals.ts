import { sameText, type Keyring } from '../../core/hmac.js';

/** The longest sealed text: the id of a key has 64 characters at most, the rest is numbers. */
const SEALED_LENGTH_MAX = 512;

/** Of 100,000 buyers two have the same lot once in 50,000 sales. */
const LOT_BYTES = 6;

/** What a seal is for, so that it counts for nothing else; and the facts that both sides know anyway. */
export interface SealOf {
  readonly kind: 'purchase-token' | 'queue-ticket' | 'queue-pass' | 'queue-lot';
  readonly saleId: string;
  readonly userId: string;
}

/**
 * Short texts that we give out and accept when they come back: `<keyId>.<field>.<field>.<HMAC>`. Buyer and sale are
 * under the HMAC but not in the text, so a text is worth nothing to anybody else. Nothing is stored, and every process
 * with the keys accepts it.
 */
export class Seals {
  readonly #keys: Keyring;
  readonly #first: string | undefined;

  /**
   * @param keys the first one seals, all are accepted, so keys can be changed. Without a key nothing is accepted, and
   *   rules that need a seal are refused
   */
  constructor(keys: Keyring) {
    this.#keys = keys;
    [this.#first] = keys.keys();
  }

  /** @param fields without a dot @throws RangeError where there is no key, and for fields that are too long */
  seal(what: SealOf, fields: readonly (string | number)[]): string {
    if (this.#first === undefined) throw new RangeError('there is no key to seal with');
    const shown = [this.#first, ...fields].join('.');
    const sealed = `${shown}.${this.#mac(this.#first, what, shown)}`;
    if (sealed.length > SEALED_LENGTH_MAX) throw new RangeError('only a short text can be sealed');
    return sealed;
  }

  /** The fields of a text with a true seal; null for anything else. */
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
   * The lot of a buyer in the waiting room of a sale, from 0 to below 1: the same in every process with the same first key, and not to be
   * guessed. @throws RangeError where there is no key
   */
  lot(saleId: string, userId: string): number {
    const mac = this.#mac(this.#first ?? '', { kind: 'queue-lot', saleId, userId }, '');
    if (mac === null) throw new RangeError('there is no key to draw with');
    return Buffer.from(mac, 'base64url').readUIntBE(0, LOT_BYTES) / 2 ** (8 * LOT_BYTES);
  }

  /** Null: there is no such key. */
  #mac(keyId: string, { kind, saleId, userId }: SealOf, shown: string): string | null {
    const key = this.#keys.get(keyId);
    // No part holds a dot, so none can be moved about.
    return key === undefined ? null : key.sign(`${kind}.${saleId}.${withoutDots(userId)}.${shown}`);
  }
}

/** A user id may hold dots. Ids without dot and percent sign stay what they are, and so do the seals over them. */
const withoutDots = (userId: string): string => userId.replace(/[%.]/g, (sign) => (sign === '.' ? '%2E' : '%25'));
