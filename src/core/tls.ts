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

/** Certificates of one kind of server, as the configuration gives them. Texts are PEM; an empty one is not set. */
export interface TlsSettings {
  /** Default: the authorities that Node trusts. */
  readonly tlsCa?: Live;
  readonly tlsCert?: Live;
  readonly tlsKey?: Live;
  /** The name that the certificate must have. Default: the host that is connected to. */
  readonly tlsServerName?: string;
}

/** What sentences call the settings of one kind of server. */
export interface TlsNames {
  /** Begins the names of the settings, such as MYSQL_TLS. */
  readonly prefix: string;
  /** Where the address is from, such as MYSQL_URL. */
  readonly address: string;
  /** How to do without TLS, for the end of a sentence. */
  readonly off: string;
}

/** What the libraries take; undefined where it is not set. */
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
 * How to connect by TLS to one kind of server. The certificate of a server is always checked, its name too. Certificates that
 * stand in files are taken as they are when a connection is made; while a pair of them does not fit, the last one that did.
 */
export class Tls {
  /** Of this process: connections that others have made are not shared. */
  readonly id = ++made;
  readonly names: TlsNames;
  readonly serverName: string | null;
  readonly #settings: Required<Omit<TlsSettings, 'tlsServerName'>>;
  #last: Usable | null = null;
  /** What no context could be made of. */
  #misfit: Material | null = null;

  constructor(
    names: TlsNames,
    { tlsCa = NOT_SET, tlsCert = NOT_SET, tlsKey = NOT_SET, tlsServerName = '' }: TlsSettings,
  ) {
    this.names = names;
    this.serverName = tlsServerName === '' ? null : tlsServerName;
    this.#settings = { tlsCa, tlsCert, tlsKey };
  }

  /** The same object for as long as nothing has changed. @throws Error when the first ones are of no use */
  get context(): SecureContext {
    return this.#current().context;
  }

  /** The same object for as long as nothing has changed. */
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
   * For `tls.connect`, or a library that passes them on to it with each connection.
   * @param host that is connected to; left out: Node checks the name of the host that it is given beside these
   */
  optionsFor(host?: string): ConnectionOptions {
    const name = this.serverName ?? host;
    const current = (): SecureContext => this.context;
    return {
      get secureContext() {
        return current();
      },
      ...(name !== undefined && isIP(name) === 0 ? { servername: name } : {}), // SNI knows no addresses (RFC 6066)
      ...(name === undefined
        ? {}
        : { checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(name, certificate) }),
    };
  }

  /** For a library that checks another name than that of the server. */
  identityFlaw(host: string, certificate: PeerCertificate): Error | undefined {
    return checkServerIdentity(this.serverName ?? host, certificate);
  }

  #current(): Usable {
    const { tlsCa, tlsCert, tlsKey } = this.#settings;
    const material = { ca: tlsCa() || undefined, cert: tlsCert() || undefined, key: tlsKey() || undefined };
    const last = this.#last;
    if (last !== null && (isSame(material, last.material) || isSame(material, this.#misfit))) return last;
    try {
      assertPair(material); // OpenSSL takes a key of another kind beside a certificate, and then shows none
      this.#last = { material, context: createSecureContext(material) };
      return this.#last;
    } catch (error) {
      if (last === null) throw error;
      this.#misfit = material; // one file is new and the other not yet
      return last;
    }
  }
}

/** @throws Error when the key is that of another certificate */
function assertPair({ cert, key }: Material): void {
  if (cert === undefined || key === undefined) return;
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error('key values mismatch');
}

const isSame = (one: Material, other: Material | null): boolean =>
  one.ca === other?.ca && one.cert === other?.cert && one.key === other?.key;

/** Words of OpenSSL and Node, which come as code or as message: libraries pass on one or the other. */
const FAULTS: readonly (readonly [RegExp, (names: TlsNames, tls: Pick<Tls, 'hasCa' | 'hasCert'> | null) => string])[] =
  [
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
 * Why a server and we do not come together over TLS, as the rest of a sentence that begins with the server; null when an error
 * says something else.
 * @param tls null: it was tried without TLS
 */
export function tlsReason(error: unknown, names: TlsNames, tls: Pick<Tls, 'hasCa' | 'hasCert'> | null): string | null {
  const { code = '', message = '' } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  const text = `${String(code)} ${String(message)}`;
  const fault = FAULTS.find(([pattern]) => pattern.test(text));
  if (fault === undefined) return null;
  return `${fault[1](names, tls)} (${shortened(String(message))})`;
}

/** The text of OpenSSL begins with the address of a thread and ends with the line of its source. */
const shortened = (message: string): string =>
  message
    .replace(/(?:^|\s)[0-9A-F]{16}:error:[0-9A-F]{8}:/, ' ')
    .replace(/:\S*\.(?:c|cc):\d+:(?:\S.*)?\n?$/, '')
    .trim();
