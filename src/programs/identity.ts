import type { Registry } from 'prom-client';
import { Revocations } from '../admission/revocations.js';
import { readIssuers } from '../core/config/issuers.js';
import type { Config, Section } from '../core/config/schema.js';
import { readKeyList } from '../core/hmac.js';
import type { Log } from '../core/ports/log.js';
import type { RevocationRepository } from '../core/ports/revocations.js';
import { createAuthenticator, type RequestAuthenticator } from '../http/auth.js';
import { Jwks } from '../http/jwks.js';
import { createIdentityMetrics } from '../http/metrics.js';
import { hs256Key, publicKey, type IssuerKeys, type OwnKeys } from '../http/token-keys.js';
import { ownTerms } from '../http/token-terms.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRevocationRepository } from '../mysql/revocation-repository.js';
import { systemClock as clock } from '../process/system-clock.js';

/** Delay until a withdrawn key is noticed. An unknown key id makes the api read the keys at once. */
const JWKS_REFRESH_MS = 300_000;
/** The largest accepted difference between the clock of an issuer and ours. Machines with NTP are within a second. */
const CLOCK_TOLERANCE_MS = 5000;

export interface IdentityParts {
  readonly mysql: MysqlPool;
  readonly registry: Registry;
  readonly log: Log;
  /** Receives an error that is a bug. */
  readonly fail: (error: unknown) => void;
}

export interface Identity {
  readonly auth: RequestAuthenticator;
  readonly revocations: RevocationRepository;
  /** The issuers whose keys the api needs. */
  readonly issuers: readonly IssuerKeys[];
  /** Never rejects. */
  close(): Promise<void>;
}

/** If an issuer does not answer, its tokens get 503 until it does. @throws OperationalError mysql (revocations) */
export async function openIdentity(
  { auth }: Config<'auth'>,
  { mysql, registry, log, fail }: IdentityParts,
): Promise<Identity> {
  const stop = new AbortController();
  const metrics = createIdentityMetrics(registry);
  const repository = createRevocationRepository(mysql);
  const lifeMaxMs = auth.lifeMaxMs + CLOCK_TOLERANCE_MS;
  const revocations = new Revocations({ repository, clock, log, lifeMaxMs });
  await revocations.start();
  const issuers = readIssuers(auth.issuers).map(
    (issuer) => new Jwks(issuer, { clock, log, metrics, refreshMs: JWKS_REFRESH_MS }),
  );
  await Promise.all(issuers.map(async (issuer) => issuer.refresh()));
  const loops = [revocations, ...issuers].map((part) => part.poll(stop.signal).catch(fail));
  const { cacheMax } = auth;
  return {
    auth: createAuthenticator(
      { own: ownKeysOf(auth), issuers },
      {
        cacheMax,
        lifeMaxMs: auth.lifeMaxMs,
        toleranceMs: CLOCK_TOLERANCE_MS,
        isRevoked: (token) => revocations.isRevoked(token),
      },
    ),
    revocations: repository,
    issuers,
    async close(): Promise<void> {
      stop.abort();
      await Promise.all(loops);
    },
  };
}

function ownKeysOf({ algorithm, key, keys, ...names }: Section<'auth'>): OwnKeys {
  const terms = ownTerms(names);
  const hs256ById = new Map([...readKeyList(keys)].map(([id, secret]) => [id, hs256Key(secret, terms)]));
  if (key === '') return { algorithm, key: null, hs256ById };
  return { algorithm, key: algorithm === 'HS256' ? hs256Key(key, terms) : publicKey(key, algorithm, terms), hs256ById };
}
