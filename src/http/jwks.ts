import type { Issuer } from '../core/config/issuers.js';
import { OutageLog } from '../core/outage-log.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import { readPublicKey, type Jwk } from '../core/public-key.js';
import { publicKey, type IssuerKeys, type TokenKey } from './token-keys.js';
import { issuerTerms } from './token-terms.js';

export interface JwksParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: {
    readonly keysRead: (issuer: string, keys: number) => void;
    readonly keysNotRead: (issuer: string) => void;
  };
  /** Interval between two reads of the keys, in ms. */
  readonly refreshMs: number;
}

/** Minimum time between two reads. It limits how often invented key ids can cause a request to the provider. */
const PAUSE_MS = 5000;
const TIMEOUT_MS = 5000;
/** A set of a dozen RSA keys with certificates takes about 30 kB. */
const BYTES_MAX = 512 * 1024;
const KEYS_MAX = 100;
/**
 * Maximum number of keys that may have signed one token. If a token has no `kid`, these are the previous, the current
 * and the next key.
 */
const CANDIDATES_MAX = 3;
/** Maximum number of requests that wait for one read. Further requests are refused at once. */
const WAITING_MAX = 1000;

/**
 * The keys of an identity provider. Reads them at the start, at intervals, and when a token names an unknown key. Keeps the
 * known keys while the provider does not answer.
 */
export class Jwks implements IssuerKeys {
  readonly issuer: string;
  readonly #of: Issuer;
  readonly #parts: JwksParts;
  readonly #outage: OutageLog;
  readonly #listeners: (() => void)[] = [];
  #keys: readonly NamedKey[] = [];
  /** The text of the last read. If the same text is read again, nothing changes. */
  #text = '';
  #isKnown = false;
  #nextMs = -Infinity;
  #underWay: Promise<void> | null = null;
  #waiting = 0;

  constructor(of: Issuer, parts: JwksParts) {
    this.issuer = of.issuer;
    this.#of = of;
    this.#parts = parts;
    this.#outage = new OutageLog(
      parts.log,
      {
        begins: 'the keys of the issuer cannot be read; known keys stay in use',
        ends: 'the keys of the issuer can be read again',
      },
      { issuer: of.issuer, url: of.jwksUrl },
    );
    if (of.jwks !== undefined) this.#take(JSON.stringify(of.jwks));
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  find(keyId: string | undefined, algorithm: string): readonly TokenKey[] {
    const found = this.#keys.filter((one) => one.algorithm === algorithm && (keyId === undefined || one.kid === keyId));
    return found.length <= CANDIDATES_MAX ? found.map(({ key }) => key) : [];
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  refresh(): Promise<void> | null {
    const { jwksUrl } = this.#of;
    if (jwksUrl === undefined) return null;
    if (this.#underWay === null) {
      const nowMs = this.#parts.clock.monotonicMs();
      if (nowMs < this.#nextMs) return null;
      this.#nextMs = nowMs + PAUSE_MS;
      this.#waiting = 0;
      this.#underWay = this.#read(jwksUrl).finally(() => (this.#underWay = null));
    }
    return this.#waiting++ < WAITING_MAX ? this.#underWay : null;
  }

  /** Reads the keys until the signal aborts. */
  async poll(signal: AbortSignal): Promise<void> {
    while (this.#of.jwksUrl !== undefined && !signal.aborted) {
      await this.refresh();
      await this.#parts.clock.sleep(this.#outage.isOut ? PAUSE_MS : this.#parts.refreshMs, signal);
    }
  }

  /** Never rejects. */
  async #read(url: string): Promise<void> {
    const { metrics } = this.#parts;
    try {
      this.#take(await fetchText(url));
      this.#outage.end();
      metrics.keysRead(this.issuer, this.#keys.length);
    } catch (error) {
      metrics.keysNotRead(this.issuer);
      this.#outage.failed(error);
    }
  }

  /** @throws Error if the text is not a key set, or if the set has no usable key */
  #take(text: string): void {
    if (text === this.#text) return;
    const terms = issuerTerms(this.#of);
    const keys: NamedKey[] = [];
    for (const key of keysIn(text)) {
      const read = readPublicKey(key);
      const flaw = 'flaw' in read ? read.flaw : whyNotUsed(key, read.algorithm, this.#of);
      if (flaw === null && 'algorithm' in read)
        keys.push({ kid: key.kid, algorithm: read.algorithm, key: publicKey(read.pem, read.algorithm, terms) });
      else this.#parts.log.warn({ issuer: this.issuer, kid: key.kid, flaw }, 'a key of the issuer is not used');
    }
    if (keys.length === 0) throw new Error('it holds no key that can be used');
    this.#keys = keys;
    this.#text = text;
    this.#isKnown = true;
    for (const listener of this.#listeners) listener();
  }
}

/** Only the key id may be missing (RFC 7517, 4.5). */
type KeyOfSet = Jwk & { readonly kid?: string };

interface NamedKey {
  readonly kid: string | undefined;
  readonly algorithm: string;
  readonly key: TokenKey;
}

function keysIn(text: string): readonly KeyOfSet[] {
  const { keys } = JSON.parse(text) as { readonly keys?: unknown };
  if (!Array.isArray(keys) || keys.length > KEYS_MAX) throw new Error(`it is not a list of at most ${KEYS_MAX} keys`);
  return keys.filter(
    (key: Jwk | null): key is KeyOfSet =>
      typeof key === 'object' && key !== null && (key.kid === undefined || typeof key.kid === 'string'),
  );
}

/** Returns why a key is not used. A set may contain keys for other purposes and other algorithms. */
function whyNotUsed({ use, alg, key_ops: ops }: KeyOfSet, algorithm: string, { algorithms }: Issuer): string | null {
  if (use !== undefined && use !== 'sig') return `is for another use: ${String(use)}`;
  if (Array.isArray(ops) && !ops.includes('verify')) return `is for other operations: ${ops.join(', ')}`;
  if (alg !== undefined && alg !== algorithm) return `is for another algorithm: ${String(alg)}`;
  return algorithms.some((one) => one === algorithm) ? null : `is for ${algorithm}, which this issuer must not use`;
}

/** @throws Error unless the answer arrives in time and without a redirect, as text of limited length */
async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status !== 200 || response.body === null) throw new Error(`the answer has status ${response.status}`);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body) {
    bytes += part.byteLength;
    if (bytes > BYTES_MAX) throw new Error(`it has more than ${BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
