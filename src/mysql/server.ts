import { connect, type Socket } from 'node:net';
import type { ConnectionOptions } from 'mysql2';
import type { Live } from '../core/live.js';
import { Tls, tlsReason, type TlsNames, type TlsSettings } from '../core/tls.js';
import { MysqlError, toMysqlError } from './errors.js';

export interface MysqlServer extends TlsSettings {
  /** `mysql://user:password@host:port/database` */
  readonly url: string;
  /** Replaces the password in `url`, unless it is empty. Read again for each connection. */
  readonly password?: Live;
  /** Default: `off`. */
  readonly tls?: 'off' | 'on';
}

const NAMES: TlsNames = { prefix: 'MYSQL_TLS', address: 'MYSQL_URL', off: 'set MYSQL_TLS to off' };

export const passwordOf = ({ url, password }: MysqlServer): string =>
  password?.() || decodeURIComponent(new URL(url).password);

/** The address to connect to, regardless of the name in the certificate. */
export function addressOf({ url }: MysqlServer): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, ''); // only in a URL do brackets mark an IPv6 address
  return { host, port: port === '' ? 3306 : Number(port) };
}

export function connectionOptions(
  server: MysqlServer,
): Pick<ConnectionOptions, 'host' | 'port' | 'user' | 'password' | 'database' | 'ssl' | 'stream'> {
  const { host, port } = addressOf(server);
  const { username, pathname } = new URL(server.url);
  const login = {
    user: decodeURIComponent(username),
    password: passwordOf(server),
    database: decodeURIComponent(pathname.slice(1)),
  };
  const tls = tlsOf(server);
  return tls === null ? { host, port, ...login } : { ...encrypted(host, port, tls), ...login };
}

const tlsOf = (server: MysqlServer): Tls | null => (server.tls === 'on' ? new Tls(NAMES, server) : null);

/**
 * The driver requires the certificate to name `host`, and checks an IP address as `localhost` unless the socket says
 * otherwise. So it gets the name, and a socket that is connected to the address.
 */
function encrypted(address: string, port: number, tls: Tls) {
  const host = tls.serverName ?? address;
  return {
    host,
    port,
    ssl: {
      verifyIdentity: true,
      rejectUnauthorized: true,
      // a getter, because the driver compares it with that of its last connection
      get ca() {
        return tls.material.ca;
      },
      get cert() {
        return tls.material.cert;
      },
      get key() {
        return tls.material.key;
      },
    },
    stream: (): Socket => {
      const socket = connect({ host: address, port, noDelay: true, keepAlive: true });
      return Object.assign(socket, { _host: host }); // the name that Node checks if there is no SNI name
    },
  };
}

const [ACCESS_DENIED, DATABASE_DENIED, NO_DATABASE] = [1045, 1044, 1049];
const UNREACHABLE = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);

/** Builds the error of a failed connection: a sentence that names the server, the reason and the remedy. */
export function connectFault(cause: unknown, server: MysqlServer): MysqlError {
  const plain = toMysqlError(cause);
  const { host, pathname, username } = new URL(server.url);
  const reason = reasonOf(cause, plain, {
    server,
    user: decodeURIComponent(username),
    database: decodeURIComponent(pathname.slice(1)),
  });
  const where = `MySQL at ${host}`;
  return new MysqlError(plain.kind, `${where} ${reason}`, null, cause, plain.serverMessage);
}

function reasonOf(
  cause: unknown,
  plain: MysqlError,
  { server, user, database }: { readonly server: MysqlServer; readonly user: string; readonly database: string },
): string {
  const { errno, code = '', message = '' } = (cause ?? {}) as { errno?: unknown; code?: string; message?: string };
  const byTls = tlsReason(cause, NAMES, tlsOf(server));
  if (byTls !== null) return byTls;
  if (/insecure transport/i.test(message)) return 'refuses connections without TLS: set MYSQL_TLS to on';
  const login = server.password?.() ? 'the user in MYSQL_URL, or MYSQL_PASSWORD' : 'user and password in MYSQL_URL';
  switch (errno) {
    case ACCESS_DENIED:
      return `refuses the user ${user}: correct ${login} (${plain.message})`;
    case DATABASE_DENIED:
      return `gives the user ${user} no rights on the database ${database}: grant them, or correct MYSQL_URL`;
    case NO_DATABASE:
      return `has no database ${database}: create it, or correct MYSQL_URL`;
  }
  if (UNREACHABLE.has(code))
    return `cannot be reached (${message || code}): check that it is running, and check MYSQL_URL`;
  return `did not accept a connection (${plain.message})`;
}
