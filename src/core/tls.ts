import { createPrivateKey, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import {
  checkServerIdentity,
  createSecureContext,
  type ConnectionOptions,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls';
import { NOT_SET, type Live } from './live.js';

/** Certificates for one kind of server, from the configuration. Texts are PEM. An empty text counts as not set. */
export interface TlsSettings {
  /** The accepted authorities. Default: the authorities that Node trusts. */
  readonly tlsCa?: Live;
  readonly tlsCert?: Live;
  readonly tlsKey?: Live;
  /** The name that the certificate must have. Default: the host of the connection. */
  readonly tlsServerName?: string;
}

/** Names of the settings for one kind of server, for use in sentences. */
export interface TlsNames {
  /** Prefix of the settings, such as MYSQL_TLS. */
  readonly prefix: string;
  /** The setting that contains the address, such as MYSQL_URL. */
  readonly address: string;
  /** How to connect without TLS, as the end of a sentence. */
  readonly off: string;
}

/** The texts that the libraries receive. Undefined if not set. */
interface Material {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

let made = 0;

interface Usable {
  readonly material: Material;
  readonly context: SecureContext;
}

/**
 * TLS connections to one kind of server. Checks every certificate with its name. Each new connection uses the current
 * files. While a certificate and its key do not match, the last matching pair stays in use.
 */
export class Tls {
  /** Unique in this process: connections of different instances are not shared. */
  readonly id = ++made;
  readonly names: TlsNames;
  readonly serverName: string | null;
  readonly #settings: Required<Omit<TlsSettings, 'tlsServerName'>>;
  #last: Usable | null = null;
  /** The last certificates and key that could not be used. */
  #misfit: Material | null = null;

  constructor(
    names: TlsNames,
    { tlsCa = NOT_SET, tlsCert = NOT_SET, tlsKey = NOT_SET, tlsServerName = '' }: TlsSettings,
  ) {
    this.names = names;
    this.serverName = tlsServerName === '' ? null : tlsServerName;
    this.#settings = { tlsCa, tlsCert, tlsKey };
  }

  /** Returns the same object until something changes. @throws Error if the first certificates are unusable */
  get context(): SecureContext {
    return this.#current().context;
  }

  /** Returns the same object until something changes. */
  get material(): Material {
    return this.#current().material;
  }

  get hasCa(): boolean {
    return this.#settings.tlsCa() !== '';
  }

  get hasCert(): boolean {
    return this.#settings.tlsCert() !== '';
  }

  /**
   * Returns options for `tls.connect`, or for a library that passes them to it.
   * @param host if absent, Node checks the host that it gets with these options
   */
  optionsFor(host?: string): ConnectionOptions {
    const name = this.serverName ?? host;
    const current = (): SecureContext => this.context;
    return {
      get secureContext() {
        return current();
      },
      ...(name !== undefined && isIP(name) === 0 ? { servername: name } : {}), // SNI allows no addresses (RFC 6066)
      ...(name === undefined
        ? {}
        : { checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(name, certificate) }),
    };
  }

  /** Checks a certificate on behalf of a library that would check for the wrong name. */
  identityFlaw(host: string, certificate: PeerCertificate): Error | undefined {
    return checkServerIdentity(this.serverName ?? host, certificate);
  }

  #current(): Usable {
    const { tlsCa, tlsCert, tlsKey } = this.#settings;
    const material = { ca: tlsCa() || undefined, cert: tlsCert() || undefined, key: tlsKey() || undefined };
    const last = this.#last;
    if (last !== null && (isSame(material, last.material) || isSame(material, this.#misfit))) return last;
    try {
      assertPair(material); // OpenSSL accepts a key of the wrong kind, and then presents no certificate
      this.#last = { material, context: createSecureContext(material) };
      return this.#last;
    } catch (error) {
      if (last === null) throw error;
      this.#misfit = material; // one file is new, the other is still old
      return last;
    }
  }
}

/** @throws Error if the key belongs to another certificate */
function assertPair({ cert, key }: Material): void {
  if (cert === undefined || key === undefined) return;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error('key values mismatch');
}

const isSame = (one: Material, other: Material | null): boolean =>
  one.ca === other?.ca && one.cert === other?.cert && one.key === other?.key;

/** Errors of OpenSSL and Node. Libraries pass them on either as a code or as a message. */
const FAULTS: readonly (readonly [RegExp, (names: TlsNames, tls: Tls | null) => string])[] = [
  [
    /self.signed certificate|unable to (verify the first|get (local )?issuer) certificate|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|certificate signature failure/i,
    ({ prefix }, tls) =>
      tls?.hasCa === false
        ? `has a certificate of an authority that this program does not trust: set ${prefix}_CA`
        : `has a certificate that no authority in ${prefix}_CA signed: correct ${prefix}_CA`,
  ],
  [
    /certificate has expired|CERT_HAS_EXPIRED/i,
    () => 'has a certificate that expired, or whose authority expired: renew it on the server',
  ],
  [
    /certificate is not yet valid|CERT_NOT_YET_VALID/i,
    () => 'has a certificate that is not valid yet: compare the clocks of both machines',
  ],
  [
    /altnames|ERR_TLS_CERT_ALTNAME_INVALID/i,
    ({ prefix, address }) =>
      `has a certificate for another name: correct the host in ${address}, or set ${prefix}_SERVER_NAME to that name`,
  ],
  [
    /alert certificate required|peer did not return a certificate/i,
    ({ prefix }) => `asks for a client certificate: set ${prefix}_CERT and ${prefix}_KEY`,
  ],
  [
    /alert (unknown ca|bad certificate|certificate (expired|revoked|unknown)|unsupported certificate|access denied)/i,
    ({ prefix }, tls) =>
      tls?.hasCert === false
        ? `asks for a client certificate: set ${prefix}_CERT and ${prefix}_KEY`
        : `does not accept the client certificate: correct ${prefix}_CERT and ${prefix}_KEY`,
  ],
  [
    /alert (handshake failure|protocol version|insufficient security)|unsupported protocol|no (shared|protocols) /i,
    ({ prefix }, tls) =>
      tls?.hasCert === false
        ? `shares no TLS version or cipher with this program, or asks for a client certificate: read its log, or set ${prefix}_CERT and ${prefix}_KEY`
        : 'shares no TLS version or cipher with this program: read its log',
  ],
  [
    /wrong version number|packet length too long|HANDSHAKE_NO_SSL_SUPPORT|does not support secure connection/i,
    ({ off }) => `does not use TLS: switch it on there, or ${off}`,
  ],
];

/** Says why TLS failed, as the rest of a sentence about the server, or null. @param tls null: tried without TLS */
export function tlsReason(error: unknown, names: TlsNames, tls: Tls | null): string | null {
  const { code = '', message = '' } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const text = `${String(code)} ${String(message)}`;
  const fault = FAULTS.find(([pattern]) => pattern.test(text));
  if (fault === undefined) return null;
  return `${fault[1](names, tls)} (${shortened(String(message))})`;
}

/** Removes the thread address at the start of an OpenSSL text and the source line at its end. */
const shortened = (message: string): string =>
  message
    .replace(/(?:^|\s)[0-9A-F]{16}:error:[0-9A-F]{8}:/, ' ')
    .replace(/:\S*\.(?:c|cc):\d+:(?:\S.*)?\n?$/, '')
    .trim();
