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

/** Certificates for one kind of server, from the configuration. Texts are PEM. An empty text is not set. */
export interface TlsSettings {
  /** Default: the authorities that Node trusts. */
  readonly tlsCa?: Live;
  readonly tlsCert?: Live;
  readonly tlsKey?: Live;
  /** The expected name in the certificate. Default: the host of the connection. */
  readonly tlsServerName?: string;
}

/** Names of the settings of one kind of server, for sentences. */
export interface TlsNames {
  /** Prefix of the settings, such as MYSQL_TLS. */
  readonly prefix: string;
  /** Setting of the address, such as MYSQL_URL. */
  readonly address: string;
  /** How to connect without TLS, for the end of a sentence. */
  readonly off: string;
}

/** The input of the libraries. Undefined if not set. */
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
 * TLS connections to one kind of server. The certificate of a server is always checked, including its name.
 * Certificates in files are read as they are when a connection is made. While a certificate and its key do not match,
 * the last matching pair is used.
 */
export class Tls {
  /** Unique in this process: connections of other instances are not shared. */
  readonly id = ++made;
  readonly names: TlsNames;
  readonly serverName: string | null;
  readonly #settings: Required<Omit<TlsSettings, 'tlsServerName'>>;
  #last: Usable | null = null;
  /** Material that made no usable context. */
  #misfit: Material | null = null;

  constructor(
    names: TlsNames,
    { tlsCa = NOT_SET, tlsCert = NOT_SET, tlsKey = NOT_SET, tlsServerName = '' }: TlsSettings,
  ) {
    this.names = names;
    this.serverName = tlsServerName === '' ? null : tlsServerName;
    this.#settings = { tlsCa, tlsCert, tlsKey };
  }

  /** Returns the same object until something changes. @throws Error when the first certificates are unusable */
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
   * Returns options for `tls.connect`, or for a library that passes them to it with each connection.
   * @param host of the connection; absent: Node checks the name of the host that it receives beside these options
   */
  optionsFor(host?: string): ConnectionOptions {
    const name = this.serverName ?? host;
    const current = (): SecureContext => this.context;
    return {
      get secureContext() {
        return current();
      },
      ...(name !== undefined && isIP(name) === 0 ? { servername: name } : {}), // SNI has no addresses (RFC 6066)
      ...(name === undefined
        ? {}
        : { checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(name, certificate) }),
    };
  }

  /** Checks a certificate for a library that would check another name than the name of the server. */
  identityFlaw(host: string, certificate: PeerCertificate): Error | undefined {
    return checkServerIdentity(this.serverName ?? host, certificate);
  }

  #current(): Usable {
    const { tlsCa, tlsCert, tlsKey } = this.#settings;
    const material = { ca: tlsCa() || undefined, cert: tlsCert() || undefined, key: tlsKey() || undefined };
    const last = this.#last;
    if (last !== null && (isSame(material, last.material) || isSame(material, this.#misfit))) return last;
    try {
      assertPair(material); // OpenSSL accepts a key of another kind beside a certificate, and then presents no certificate
      this.#last = { material, context: createSecureContext(material) };
      return this.#last;
    } catch (error) {
      if (last === null) throw error;
      this.#misfit = material; // one file is new, the other file is not yet
      return last;
    }
  }
}

/** @throws Error when the key belongs to another certificate */
function assertPair({ cert, key }: Material): void {
  if (cert === undefined || key === undefined) return;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error('key values mismatch');
}

const isSame = (one: Material, other: Material | null): boolean =>
  one.ca === other?.ca && one.cert === other?.cert && one.key === other?.key;

/** Words of OpenSSL and Node. Libraries pass them on either as code or as message. */
const FAULTS: readonly (readonly [RegExp, (names: TlsNames, tls: Tls | null) => string])[] = [
  [
    /self.signed certificate|unable to (verify the first|get (local )?issuer) certificate|SELF_SIGNED|UNABLE_TO_(VERIFY|GET_ISSUER)|certificate signature failure/i,
    ({ prefix }, tls) =>
      tls?.hasCa === false
        ? `shows a certificate of an authority that nobody trusts here: set ${prefix}_CA`
        : `shows a certificate that no authority in ${prefix}_CA has signed: correct ${prefix}_CA`,
  ],
  [
    /certificate has expired|CERT_HAS_EXPIRED/i,
    () => 'shows a certificate that has expired, or whose authority has: renew it there',
  ],
  [
    /certificate is not yet valid|CERT_NOT_YET_VALID/i,
    () => 'shows a certificate that is not valid yet: compare the clocks of both machines',
  ],
  [
    /altnames|ERR_TLS_CERT_ALTNAME_INVALID/i,
    ({ prefix, address }) =>
      `shows a certificate for another name: correct the host in ${address}, or say in ${prefix}_SERVER_NAME which name it has`,
  ],
  [
    /alert certificate required|peer did not return a certificate/i,
    ({ prefix }) => `asks for a certificate of ours: set ${prefix}_CERT and ${prefix}_KEY`,
  ],
  [
    /alert (unknown ca|bad certificate|certificate (expired|revoked|unknown)|unsupported certificate|access denied)/i,
    ({ prefix }, tls) =>
      tls?.hasCert === false
        ? `asks for a certificate of ours: set ${prefix}_CERT and ${prefix}_KEY`
        : `does not accept our certificate: correct ${prefix}_CERT and ${prefix}_KEY`,
  ],
  [
    /alert (handshake failure|protocol version|insufficient security)|unsupported protocol|no (shared|protocols) /i,
    ({ prefix }, tls) =>
      tls?.hasCert === false
        ? `and we agree on no version or cipher of TLS, or it asks for a certificate of ours: see its log, or set ${prefix}_CERT and ${prefix}_KEY`
        : 'and we agree on no version or cipher of TLS: see its log',
  ],
  [
    /wrong version number|packet length too long|HANDSHAKE_NO_SSL_SUPPORT|does not support secure connection/i,
    ({ off }) => `speaks no TLS there: switch it on, or ${off}`,
  ],
];

/**
 * Says why a TLS connection to a server failed, as the rest of a sentence that begins with the server. Null for any
 * other error.
 * @param tls null: the connection was tried without TLS
 */
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
