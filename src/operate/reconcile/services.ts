import type { Config } from '../../core/config/schema.js';
import { createAuditLog } from '../../mysql/audit-log.js';
import { createCompensationRepository } from '../../mysql/compensation-repository.js';
import { createOrderRepository } from '../../mysql/order-repository.js';
import { createOutbox } from '../../mysql/outbox.js';
import { createReconcileRepository } from '../../mysql/reconcile-repository.js';
import { createSaleRepository } from '../../mysql/sale-repository.js';
import type { Connections, PublishSections } from '../../process/connections.js';
import { wrapped } from '../../process/seams.js';
import { messageSignatures } from '../../process/servers.js';
import { createBatchStore } from '../../redis/batch-store.js';
import { createReconcileStore } from '../../redis/reconcile-store.js';
import { createRepairStore } from '../../redis/repair-store.js';
import { brokerAccessOf } from '../../rocketmq/credentials.js';
import { ReconcileAdmin, type ReconcileAdminPorts } from './reconcile-admin.js';
import { createReconcileRuns } from './reconcile-runs.js';
import { resolveLost, type ResolvedOrder, type ResolveOrder, type SaleResolved } from './resolve-lost.js';
import { createBrokerSearch, notSearched } from './search-broker.js';

export interface ReconcileServices {
  readonly reconcile: ReconcileAdmin;
}

export type Resolves = {
  /** @throws OperationalError */
  readonly resolveLost: (request: ResolveOrder, onOrder?: (order: ResolvedOrder) => void) => Promise<SaleResolved>;
};

type Reconciles = Connections<'mysql' | 'redis' | PublishSections | 'reconcile'>;

const LIMITS = {
  /** An outbox row that is older than this is stuck. After an outage, a keeper needs minutes. */
  outboxAgeMs: 600_000,
  /** A batch is reported after this time in the re-drive. An hour is longer than most outages. */
  waitingMaxMs: 3_600_000,
  /** Number of requests per sale and kind that a run reads again, one by one. The next run reads the others. */
  readsMax: 1000,
};

/** @throws OperationalError redis */
export async function openReconcile(connections: Reconciles): Promise<ReconcileServices> {
  return { reconcile: new ReconcileAdmin(await portsOf(connections), limitsOf(connections.config)) };
}

/** @throws OperationalError redis */
export async function openResolve(connections: Reconciles & Connections<'repair' | 'order'>): Promise<Resolves> {
  const { config } = connections;
  const audit = createAuditLog(connections.mysql());
  const ports = { ...(await portsOf(connections)), audit, search: brokerSearchOf(config) };
  const limits = { ...limitsOf(config), paymentWindowMs: config.order.paymentWindowMs };
  return { resolveLost: (request, onOrder) => resolveLost(request, ports, limits, onOrder) };
}

const limitsOf = ({ reconcile }: Config<'reconcile'>) => ({ ...reconcile, ...LIMITS });

async function portsOf(connections: Reconciles): Promise<ReconcileAdminPorts> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  const { clock, log } = connections;
  return {
    batches: createBatchStore(redis),
    store: createReconcileStore(redis),
    repairs: createRepairStore(redis),
    repository: createReconcileRepository(mysql),
    jobs: createCompensationRepository(mysql),
    runs: createReconcileRuns(mysql, clock),
    sales: createSaleRepository(mysql),
    outbox: createOutbox(mysql),
    fail: {
      repository: wrapped('order repository', createOrderRepository(mysql)),
      minter: connections.minter(),
      clock,
    },
    channel: connections.redrives(),
    clock,
    log,
  };
}

const brokerSearchOf = ({ repair: { namesrv }, brokerAccess, messages }: Config<'repair' | PublishSections>) =>
  namesrv === '' ? notSearched : createBrokerSearch(namesrv, brokerAccessOf(brokerAccess), messageSignatures(messages));
