import { HmacSha256, sameText } from '../../core/hmac.js';
import { readKeyList } from '../../core/key-list.js';

/** Secrets by the id of their key, ready to sign. The first one signs what we give out; all of them are believed. */
export type Keyring = ReadonlyMap<string, HmacSha256>;

/**
 * Reads `id:secret,id:secret`. An empty text is an empty ring.
 * @param textBytesMax length of the longest text that will ever be signed
 * @throws RangeError as readKeyList
 */
export const readKeyring = (text: string, textBytesMax: number): Keyring =>
  new Map([...readKeyList(text)].map(([id, secret]) => [id, new HmacSha256(secret, textBytesMax)]));

/** The longest text under a seal: kind, key, sale and buyer have 64 characters at most, the rest is numbers. */
export const SEALED_BYTES_MAX = 512;

/** What is sealed, so that no seal counts for anything else; and the facts that both sides know anyway. */
export interface SealOf {
  readonly kind: 'purchase-token' | 'queue-ticket' | 'queue-pass';
  readonly saleId: string;
  readonly userId: string;
}

/**
 * Short texts that we give out and believe when they come back: `<keyId>.<field>.<field>.<HMAC>`. The buyer and the
 * sale are under the seal but not in the text, so a text is worth nothing to anybody else. Nothing is stored, and
 * every process with the keys believes it.
 */
export class Seals {
  readonly #keys: Keyring;
  readonly #first: string | undefined;

  /**
   * @param keys the first one seals; a text of any of them is believed, which lets keys change. Without a key nothing
   *   is believed, and rules that need a seal are not taken
   */
  constructor(keys: Keyring) {
    this.#keys = keys;
    [this.#first] = keys.keys();
  }

  /** @param fields without a dot @throws RangeError for a field that cannot be sealed, and where there is no key */
  seal(what: SealOf, fields: readonly (string | number)[]): string {
    if (this.#first === undefined) throw new RangeError('there is no key to seal with');
    const shown = [this.#first, ...fields].join('.');
    const mac = this.#mac(this.#first, what, shown);
    if (mac === null) throw new RangeError('only a short ASCII text can be sealed');
    return `${shown}.${mac}`;
  }

  /** The fields of a text with a true seal; null for anything else. */
  open(what: SealOf, text: string): readonly string[] | null {
    if (text.length > SEALED_BYTES_MAX) return null;
    const end = text.lastIndexOf('.');
    if (end === -1) return null;
    const shown = text.slice(0, end);
    const [keyId = '', ...fields] = shown.split('.');
    const mac = this.#mac(keyId, what, shown);
    return mac !== null && sameText(mac, text.slice(end + 1)) ? fields : null;
  }

  #mac(keyId: string, { kind, saleId, userId }: SealOf, shown: string): string | null {
    const key = this.#keys.get(keyId);
    const text = `${kind}.${saleId}.${userId}.${shown}`; // ids hold no dot, so the parts cannot be moved about
    return key === undefined ? null : key.sign(text, text.length);
  }
}
