import { X509Certificate } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The certificate files of an instance, in PEM. */
export interface CertificateFiles {
  /** The certificate of the authority that signed the other certificates. */
  readonly ca: string;
  readonly server: string;
  readonly serverKey: string;
  readonly client: string;
  readonly clientKey: string;
}

export const certificateFiles = (instanceDir: string): CertificateFiles => {
  const at = (name: string): string => join(instanceDir, 'tls', name);
  return {
    ca: at('ca.pem'),
    server: at('server.pem'),
    serverKey: at('server-key.pem'),
    client: at('client.pem'),
    clientKey: at('client-key.pem'),
  };
};

const DAY_MS = 86_400_000;
/** The authority key is not kept, so all certificates are renewed together. */
const LIFE_DAYS = 90;
/** Servers may run this long before their next start. */
const LEFT_AT_LEAST_DAYS = 30;

/**
 * Creates the certificates of an instance unless they are valid for another month.
 * @param mayRenew false while a server runs, which would keep its old certificate: then valid certificates are kept
 */
export async function ensureCertificates(files: CertificateFiles, mayRenew = true): Promise<void> {
  const daysNeeded = mayRenew ? LEFT_AT_LEAST_DAYS : 0;
  if (Object.values(files).every((file) => existsSync(file)) && daysLeft(files.server) > daysNeeded) return;
  const authority = await makeAuthority('Seckill local authority');
  const [server, client] = await Promise.all([
    makeCertificate({ commonName: 'localhost', names: ['localhost'], addresses: ['127.0.0.1'] }, authority),
    makeCertificate({ commonName: 'seckill', names: ['seckill'] }, authority),
  ]);
  writePrivate(files.ca, authority.cert);
  writePrivate(files.server, server.cert);
  writePrivate(files.serverKey, server.key);
  writePrivate(files.client, client.cert);
  writePrivate(files.clientKey, client.key);
}

const daysLeft = (file: string): number =>
  (Date.parse(new X509Certificate(readFileSync(file)).validTo) - Date.now()) / DAY_MS;

/** A certificate and its private key, in PEM. */
export interface Certified {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateParts {
  readonly commonName: string;
  readonly names?: readonly string[];
  readonly addresses?: readonly string[];
  /** Defaults to now. */
  readonly fromMs?: number;
  /** Defaults to 90 days from now. */
  readonly untilMs?: number;
}

/** Uses elliptic curves, because an RSA key takes seconds. */
const HOW = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;

export async function makeAuthority(commonName: string): Promise<Certified> {
  const { cert, private: key } = await (
    await import('selfsigned')
  ).generate([{ name: 'commonName', value: commonName }], {
    ...HOW,
    ...lifeOf({}),
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return { cert, key };
}

/** Creates a certificate for a server and a client, signed by an authority. */
export async function makeCertificate(parts: CertificateParts, authority: Certified): Promise<Certified> {
  const { commonName, names = [], addresses = [] } = parts;
  const { cert, private: key } = await (
    await import('selfsigned')
  ).generate([{ name: 'commonName', value: commonName }], {
    ...HOW,
    ...lifeOf(parts),
    ca: authority,
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          ...names.map((value) => ({ type: 2 as const, value })),
          ...addresses.map((ip) => ({ type: 7 as const, ip })),
        ],
      },
    ],
  });
  return { cert, key };
}

/** Returns the validity, which starts a minute early because another machine's clock may be slightly behind. */
const lifeOf = ({
  fromMs = Date.now() - 60_000,
  untilMs = fromMs + LIFE_DAYS * DAY_MS,
}: Partial<CertificateParts>) => ({
  notBeforeDate: new Date(fromMs),
  notAfterDate: new Date(untilMs),
});

export function writePrivate(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text, { mode: 0o600 });
  chmodSync(file, 0o600); // the mode above applies only to a new file
}
