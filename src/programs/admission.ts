import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Registry } from 'prom-client';
import { Admission } from '../admission/admission.js';
import { REPORT_TIMES, SharedBreakers } from '../admission/breaker/shared-breakers.js';
import { Degrade, DegradeLayer } from '../admission/degrade/degrade.js';
import { DegradedReads, FallbackCache, type Body, type ReadEndpoint } from '../admission/degrade/degraded-reads.js';
import { AddressLimit } from '../admission/limits/address-limit.js';
import { createLimitedAddress } from '../admission/limits/limited-addresses.js';
import { Limits } from '../admission/limits/limits.js';
import { CancelLimit } from '../admission/orders/cancel-limit.js';
import { declineBound } from '../admission/orders/decline-limit.js';
import { UnpaidPause } from '../admission/orders/unpaid-pause.js';
import { Lists } from '../admission/lists/lists.js';
import { NetworkSet } from '../admission/lists/network-set.js';
import { createAdmissionMetrics, createRoomMetrics, createWaitingRoomMetrics } from '../admission/metrics.js';
import { QueuePasses, WaitingRooms } from '../admission/queue/waiting-rooms.js';
import { CurrentRules, RulesLayer, rulesReadiness } from '../admission/rules/current-rules.js';
import { missingSecrets, type RuleSet } from '../admission/rules/rule-set.js';
import { PurchaseTokens } from '../admission/sign/purchase-tokens.js';
import { RequestSignatures } from '../admission/sign/request-signatures.js';
import { Seals } from '../admission/sign/seals.js';
import type { Config } from '../core/config/schema.js';
import { readKeyring } from '../core/hmac.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import { createClientAddress } from '../http/client-address.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRuleRepository } from '../mysql/rule-repository.js';
import { createBreakerStore } from '../redis/breaker-store.js';
import type { RedisConnection } from '../redis/connection.js';
import { createLimitStore } from '../redis/limit-store.js';
import { createLineStore } from '../redis/line-store.js';
import { createNonceStore } from '../redis/nonce-store.js';
import { createPurchaseTokenStore } from '../redis/purchase-token-store.js';
import { createRuleBroadcast } from '../redis/rule-broadcast.js';
import { createRuleReports } from '../redis/rule-reports.js';
import { systemClock as clock } from '../process/system-clock.js';
import { breakerWrappers } from './with-breakers.js';

/** Number of previous answers kept per endpoint. At half a kB each, they take a few MB. */
const ANSWERS_MAX = 5000;

interface AdmissionParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly registry: Registry;
  readonly log: Log;
  /** Whether this process knows that a sale has no units left. Called only while the api serves. */
  readonly isSoldOut: (saleId: string) => boolean;
  /** Receives an error that is a bug. */
  readonly fail: (error: unknown) => void;
}

/** Opens every layer under the current rules. @throws OperationalError mysql, if the rules cannot be read */
export async function openAdmission(
  { admission: { signKeys, sealKeys }, http }: Config<'admission' | 'http'>,
  { redis, mysql, registry, log, isSoldOut, fail }: AdmissionParts,
) {
  const metrics = createAdmissionMetrics(registry);
  const stop = new AbortController();

  // Rules: MySQL stores them, and Redis announces changes.
  const keys = { sign: readKeyring(signKeys), seal: readKeyring(sealKeys) };
  const unfit = (rules: RuleSet) => missingSecrets(rules, keys);
  const processId = randomUUID();
  const reporter = { processId, host: hostname(), pid: process.pid };
  const current = new CurrentRules({
    repository: createRuleRepository(mysql),
    broadcast: createRuleBroadcast(redis),
    reports: createRuleReports(redis),
    reporter,
    clock,
    metrics,
    log,
    unfit,
  });
  await current.start();

  // The layers that see every request of a buyer.
  const lists = new Lists((userId) => current.of(userId).lists);
  const limits = new Limits({
    rules: (userId) => current.of(userId).limits,
    store: createLimitStore(redis),
    clock,
    metrics,
    log,
  });
  const breakers = new SharedBreakers(
    {
      rules: () => current.rules.breaker,
      store: createBreakerStore(redis),
      clock,
      random: Math.random,
      metrics,
      log,
    },
    { processId, ...REPORT_TIMES },
  );
  await breakers.runOnce(); // a new process starts with the others' quorum
  const degrade = new Degrade({
    rules: (userId) => current.of(userId).degrade,
    refuses: (dependency) => breakers.refuses(dependency),
    metrics,
  });
  // The breakers come last, because a request that a breaker admits to a trial should reach the dependency.
  const layers = [new RulesLayer(current), lists, limits, new DegradeLayer(degrade)];

  // The proofs of a purchase: signature, queue pass, purchase token.
  const seals = new Seals(keys.seal);
  const signRules = () => current.rules.sign;
  const tokenRules = () => current.rules.sign.tokens;
  const queueRules = () => current.rules.queue;
  const rooms = new WaitingRooms({
    rules: queueRules,
    seals,
    store: createLineStore(redis),
    isSoldOut,
    clock,
    metrics: createRoomMetrics(registry),
  });
  createWaitingRoomMetrics(registry, () => rooms.waiting);

  const loops = [current.poll(stop.signal), breakers.poll(stop.signal), tick(rooms, stop.signal)].map((loop) =>
    loop.catch(fail),
  );
  const reads = (endpoint: ReadEndpoint): DegradedReads => {
    const rules = () => current.rules.degrade.cache;
    return new DegradedReads(endpoint, new FallbackCache<Body>({ rules, clock, max: ANSWERS_MAX }));
  };
  const proxies = networksOf(http.trustedProxies);
  const limitedAddress = createLimitedAddress(proxies, networksOf(http.unlimitedNetworks));
  return {
    services: {
      admission: new Admission(current, layers, metrics),
      addressOf: createClientAddress(proxies),
      addressLimit: new AddressLimit(http.requestsPerAddressMax, { limited: limitedAddress, clock, metrics }),
      limitedAddress,
      degrade,
      reads: { status: reads('status'), sale: reads('sale'), order: reads('order') },
      signatures: new RequestSignatures({
        rules: signRules,
        keys: keys.sign,
        nonces: createNonceStore(redis),
        clock,
        metrics,
      }),
      tokens: new PurchaseTokens({ rules: tokenRules, seals, store: createPurchaseTokenStore(redis), clock, metrics }),
      passes: new QueuePasses({ rules: queueRules, seals, clock, metrics }),
      rooms,
      clock,
    },
    breakers,
    /** Returns why this api cannot use rules. */
    unfit,
    rulesReadiness: () => rulesReadiness(current.standing),
    cancelLimit: new CancelLimit(() => current.rules.orders, metrics),
    declineBound: () => declineBound(() => current.rules.orders, metrics),
    unpaidPause: (repository: OrderRepository) =>
      new UnpaidPause({ rules: (userId) => current.of(userId).orders, repository, clock, metrics }),
    /** Wraps stores and channels so that the breakers see the results of their calls. */
    withBreakers: breakerWrappers(breakers),
    smooth: () => limits.smooth(),
    /** Ends the loops and withdraws the reports of this process. Never rejects. */
    async close(): Promise<void> {
      stop.abort();
      await Promise.all(loops);
    },
  };
}

const networksOf = (list: string): NetworkSet => new NetworkSet(list.split(',').filter((text) => text !== ''));

async function tick(rooms: WaitingRooms, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(await rooms.runOnce(), signal);
  }
}
