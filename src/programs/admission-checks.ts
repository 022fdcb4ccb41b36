import { randomInt } from 'node:crypto';
import type { Registry } from 'prom-client';
import type { Config } from '../core/config/schema.js';
import { QueuePasses, TICK_MS, WaitingRooms } from '../admission/queue/waiting-rooms.js';
import type { RuleSet } from '../admission/rules/rule-set.js';
import { CANONICAL_BYTES_MAX, RequestSignatures } from '../admission/sign/request-signatures.js';
import { readKeyring, type Keyring, SEALED_BYTES_MAX, Seals } from '../admission/sign/seals.js';
import { PurchaseTokens } from '../admission/sign/purchase-tokens.js';
import type { HttpServices } from '../http/services.js';
import { createQueueMetrics } from './admission-metrics.js';
import type { AdmissionMetrics } from '../core/ports/admission-metrics.js';
import type { RedisConnection } from '../redis/connection.js';
import { createNonceStore } from '../redis/nonce-store.js';
import { createPurchaseTokenStore } from '../redis/purchase-token-store.js';
import { systemClock as clock } from './system-clock.js';

// Other processes and clients read these times: the clock of the machine, which they share, and not a steady one.

/** The keys of this process, by what they are for. */
export interface AdmissionKeys {
  readonly sign: Keyring;
  readonly seal: Keyring;
}

export const admissionKeysOf = ({ signKeys, sealKeys }: Config<'entry'>['entry']): AdmissionKeys => ({
  sign: readKeyring(signKeys, CANONICAL_BYTES_MAX),
  seal: readKeyring(sealKeys, SEALED_BYTES_MAX),
});

export interface AdmissionChecksParts {
  readonly keys: AdmissionKeys;
  readonly rules: () => RuleSet;
  readonly redis: RedisConnection;
  readonly registry: Registry;
  readonly metrics: Pick<AdmissionMetrics, 'refused'>;
  /** Whether this process knows that nothing of a sale is left. */
  readonly isSoldOut: (saleId: string) => boolean;
  /** Told of what nobody foresaw. */
  readonly fail: (error: unknown) => void;
}

/** What buyers must show: signature, purchase token, pass; and the rooms in which they wait for one. */
export interface AdmissionChecks {
  readonly services: Pick<HttpServices, 'signatures' | 'tokens' | 'passes' | 'rooms' | 'clock'>;
  /** The rooms stand still from now on. Never rejects. */
  close(): Promise<void>;
}

export function openAdmissionChecks(parts: AdmissionChecksParts): AdmissionChecks {
  const { keys, rules, redis, registry, metrics, isSoldOut, fail } = parts;
  const seals = new Seals(keys.seal);
  const [sign, tokens, queue] = [() => rules().sign, () => rules().sign.tokens, () => rules().queue];
  const rooms = new WaitingRooms({ rules: queue, seals, isSoldOut, pick: (max) => randomInt(max), clock });
  createQueueMetrics(registry, () => rooms.waiting);
  const stop = new AbortController();
  const turning = keepTurning(rooms, stop.signal).catch(fail);
  return {
    services: {
      signatures: new RequestSignatures({
        ...{ rules: sign, keys: keys.sign, nonces: createNonceStore(redis), clock, metrics },
      }),
      tokens: new PurchaseTokens({ rules: tokens, seals, store: createPurchaseTokenStore(redis), clock, metrics }),
      passes: new QueuePasses({ rules: queue, seals, clock, metrics }),
      rooms,
      clock,
    },
    async close(): Promise<void> {
      stop.abort();
      await turning;
    },
  };
}

async function keepTurning(rooms: WaitingRooms, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    rooms.runOnce();
    await clock.sleep(TICK_MS, signal);
  }
}
