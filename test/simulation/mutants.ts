import { purchaseKey } from '../../src/core/purchase.js';
import type { Batch, BatchRef } from '../../src/core/batch.js';
import type { Release } from '../../src/core/ports/batch-store.js';
import type { BucketRef, StockStore } from '../../src/core/ports/stock-store.js';
import type { Place } from '../../src/purchase/batcher.js';
import { replaced } from './engine/through.js';
import { SALE_ID } from './shape.js';
import type { Rules, Servers, Site } from './site.js';

/** A program with one rule broken on purpose. The simulation has to notice. */
export interface Mutant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly breaks: string;
  readonly servers?: (servers: Servers, site: Site) => Partial<Servers>;
  readonly rules?: (site: Site) => Partial<Rules>;
}

export const THE_RULES: Rules = {
  place: (place) => place,
  checkBack: (checkBack) => checkBack,
  delivery: (delivery) => delivery,
  redrives: true,
};

const withStock = (servers: Servers, methods: Partial<StockStore>): Partial<Servers> => ({
  stock: replaced(servers.stock, methods),
});

/** Does something to the bucket while one script runs, as if the script had forgotten to look at it. */
function deductBlind(servers: Servers, site: Site, blind: (ref: BucketRef) => () => void): Partial<Servers> {
  return withStock(servers, {
    deduct: async (batch) => {
      const restore = blind(batch);
      const verdict = await servers.stock.deduct(batch);
      restore();
      return verdict;
    },
  });
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'check-back-rolls-back-on-doubt',
    breaks: 'no answer while finding out is no rollback (rule 2)',
    rules: () => ({
      checkBack: (checkBack) => async (body) => {
        const answer = await checkBack(body);
        return answer === 'no_answer' ? 'rollback' : answer;
      },
    }),
  },
  {
    name: 'check-back-commits-on-doubt',
    breaks: 'no answer while finding out is no commit (rule 2)',
    rules: () => ({
      checkBack: (checkBack) => async (body) => {
        const answer = await checkBack(body);
        return answer === 'no_answer' ? 'commit' : answer;
      },
    }),
  },
  {
    name: 'decide-leaves-no-tombstone',
    breaks: 'a batch that was decided aborted stays so (rule 1)',
    servers: (servers, site) =>
      withStock(servers, {
        resolve: async (ref: BatchRef) => {
          const word = await servers.stock.resolve(ref);
          if (word === 'aborted') site.store.bucket(ref).markers.delete(ref.batchId);
          return word;
        },
      }),
  },
  {
    name: 'lost-reply-is-a-no',
    breaks: 'unknown is an answer: nothing is refused after a time-out (rules 2 and 3)',
    rules: () => ({
      place:
        (place): Place =>
        (bucket, purchases, trace, deliver) =>
          place(bucket, purchases, trace, (index, result) =>
            deliver(index, result.outcome === 'outcome_unknown' ? { outcome: 'sold_out' } : result),
          ),
    }),
  },
  {
    name: 'yes-before-deduct',
    breaks: 'every 202 stands for units held (rule 3)',
    rules: () => ({
      place:
        (place): Place =>
        (bucket, purchases, trace, deliver) => {
          purchases.forEach((_, index) => deliver(index, { outcome: 'accepted' }));
          return place(bucket, purchases, trace, () => undefined);
        },
    }),
  },
  {
    name: 'survivors-go-twice',
    breaks: 'a survivor of a refused batch goes again once (rule 4)',
    rules: () => ({
      place:
        (place): Place =>
        (bucket, purchases, trace, deliver) =>
          place(bucket, purchases, trace, (index, result) => {
            deliver(index, result);
            if (result.outcome === 'again') deliver(index, result);
          }),
    }),
  },
  {
    name: 'deduct-forgets-the-stock',
    breaks: 'a batch that does not fit takes nothing',
    servers: (servers, site) =>
      deductBlind(servers, site, (ref) => {
        const bucket = site.store.bucket(ref);
        bucket.unitsLeft += 100;
        return () => void (bucket.unitsLeft -= 100);
      }),
  },
  {
    name: 'deduct-forgets-the-limit',
    breaks: 'the limit counts when units are taken, not only when precheck looks',
    servers: (servers, site) =>
      deductBlind(servers, site, (ref) => {
        const { sale } = site.store.bucket(ref);
        const limit = sale?.limitPerBuyer ?? 0;
        if (sale) sale.limitPerBuyer = 100;
        return () => void (sale && (sale.limitPerBuyer = limit));
      }),
  },
  {
    name: 'settle-and-ack-before-commit',
    breaks: 'rows first, then the ledger, then the ack (rule 8)',
    servers: (servers) => ({
      orders: replaced(servers.orders, {
        write: async (plan) => {
          const orders = plan.orders.map(({ batch }) => batch);
          await servers.settlement.markRecorded([...new Set(orders)].map((batch) => ({ batch, orders: [] })));
          return servers.orders.write(plan);
        },
      }),
    }),
    rules: () => ({
      delivery: (delivery) => {
        void delivery.ack();
        return delivery;
      },
    }),
  },
  {
    name: 'nothing-is-re-driven',
    breaks: 'a batch that stays pending is published again (rule 8)',
    rules: () => ({ redrives: false }),
  },
  {
    name: 'rows-found-are-counted-again',
    breaks: 'rows that were there before are not counted again (rule 6)',
    servers: (servers, site) => ({
      orders: replaced(servers.orders, {
        write: async (plan) => {
          const written = await servers.orders.write(plan);
          const sale = site.books.saleOf(SALE_ID);
          if (written.outcome === 'row_exists' && sale) site.books.putSale({ ...sale, sold: sale.sold + 1 });
          return written;
        },
      }),
    }),
  },
  {
    name: 'settle-moves-what-was-released',
    breaks: 'settle moves what its batch holds, and nothing else (rule 7)',
    servers: (servers, site) => ({
      settlement: replaced(servers.settlement, {
        markRecorded: async (settled) => {
          await servers.settlement.markRecorded(settled);
          for (const { batch, orders } of settled) {
            for (const order of orders) reorder(site, batch, purchaseKey(order), order.orderId);
          }
        },
      }),
    }),
  },
  {
    name: 'release-gives-twice',
    breaks: 'units of a request go back once (rule 7)',
    servers: (servers, site) => ({
      settlement: replaced(servers.settlement, {
        release: async (releases) => {
          for (const release of releases) giveAgain(site, release);
          return servers.settlement.release(releases);
        },
      }),
    }),
  },
  {
    name: 'outbox-done-before-publish',
    breaks: 'a row of the outbox is done after what it promises',
    servers: (servers) => ({
      outbox: replaced(servers.outbox, {
        lease: async (kind, max, leaseMs) => {
          const rows = await servers.outbox.lease(kind, max, leaseMs);
          await servers.outbox.markDone(rows.map(({ outboxId }) => outboxId));
          return rows;
        },
      }),
    }),
  },
  {
    name: 'cancel-promises-no-release',
    breaks: 'the end of an order and the promise of its units are one transaction (rule 7)',
    servers: (servers, site) => ({
      moves: replaced(servers.moves, {
        cancel: async (orderId) => {
          const before = new Set(site.books.outboxRows);
          const outcome = await servers.moves.cancel(orderId);
          site.books.outbox.rows = site.books.outbox.rows.filter((row) => before.has(row) || row.kind !== 'release');
          return outcome;
        },
      }),
    }),
  },
  {
    name: 'status-asks-mysql-only',
    breaks: 'who has heard a yes never hears that there is no such purchase',
    servers: (servers) => withStock(servers, { findRequest: async () => null }),
  },
  {
    name: 'flag-knows-no-winners',
    breaks: 'a buyer who has won never hears sold_out',
    servers: (servers) =>
      withStock(servers, {
        acceptedCount: async () => 0,
        acceptedKeys: async function* () {
          yield [];
        },
      }),
  },
  {
    name: 'deduct-trusts-any-server',
    breaks: 'a server that was restarted sells nothing before it is repaired (rule 9)',
    servers: (servers, site) => {
      const trusting =
        <A extends [BucketRef, ...unknown[]], T>(call: (...args: A) => Promise<T>) =>
        async (...args: A): Promise<T> => {
          const { sale } = site.store.bucket(args[0]);
          const stamp = sale?.stamp ?? 0;
          if (sale) sale.stamp = site.store.runId;
          const answer = await call(...args);
          if (sale) sale.stamp = stamp;
          return answer;
        };
      return withStock(servers, {
        precheck: trusting((ref, purchases) => servers.stock.precheck(ref, purchases)),
        deduct: trusting((batch) => servers.stock.deduct(batch)),
      });
    },
  },
  {
    name: 'check-back-rolls-back-what-is-outlived',
    breaks: 'a batch of an older epoch without a marker may have been deducted: it is committed (rule 11)',
    servers: (servers) =>
      withStock(servers, {
        resolve: async (ref) => {
          const word = await servers.stock.resolve(ref);
          return word === 'outlived' ? 'aborted' : word;
        },
      }),
  },
  {
    name: 'late-batches-claim-nothing',
    breaks: 'a batch of an older epoch takes its units in the present one (rule 11)',
    servers: (servers) => ({
      settlement: replaced(servers.settlement, {
        reacquire: async () => ({ outcome: 'claimed', lost: new Set<string>(), elsewhere: new Set<string>() }),
      }),
    }),
  },
  {
    name: 'repair-forgets-what-is-held',
    breaks: 'a request that is held and has no row keeps its units (rule 10)',
    servers: (servers) => ({
      repair: replaced(servers.repair, {
        requestsWithUnits: async function* () {
          yield [];
        },
      }),
    }),
  },
  {
    name: 'repair-is-not-shut',
    breaks: 'nothing is settled or released while the books are rebuilt (rule 10)',
    servers: (servers, site) => ({
      settlement: replaced(servers.settlement, {
        release: async (releases) => {
          const sales = releases.map((release) => site.store.bucket(release).sale);
          const states = sales.map((sale) => sale?.state);
          for (const sale of sales) if (sale?.state === 'repair') sale.state = 'closed';
          const words = await servers.settlement.release(releases);
          sales.forEach((sale, index) => sale && (sale.state = states[index] ?? sale.state));
          return words;
        },
      }),
    }),
  },
  {
    name: 'borrow-without-its-number',
    breaks: 'a transfer that has arrived brings nothing a second time',
    servers: (servers, site) => ({
      transfers: replaced(servers.transfers, {
        transferIn: async (saleId, transfer, epoch) => {
          const { borrowed } = site.store.bucket({ saleId, bucket: transfer.to });
          borrowed.delete(transfer.from);
          return servers.transfers.transferIn(saleId, transfer, epoch);
        },
      }),
    }),
  },
  {
    name: 'confirm-before-borrow',
    breaks: 'the lender forgets units only when they have arrived',
    servers: (servers) => ({
      transfers: replaced(servers.transfers, {
        transferOut: async (from, to, epoch, least) => {
          const lent = await servers.transfers.transferOut(from, to, epoch, least);
          if (lent.outcome !== 'transferred') return lent;
          await servers.transfers.endTransfer(from.saleId, { from: from.bucket, to, ...lent }, epoch);
          return lent;
        },
      }),
    }),
  },
  {
    name: 'sold-out-after-one-bucket',
    breaks: 'sold_out is said when all buckets together have too few',
    servers: (servers) => ({
      transfers: replaced(servers.transfers, {
        transferOut: async () => ({ outcome: 'empty' }),
        read: async (ref, buckets) => {
          const look = await servers.transfers.read(ref, buckets);
          return look === null ? null : { ...look, unitsLeft: 0 };
        },
      }),
    }),
  },
  {
    name: 'units-on-their-way-are-forgotten',
    breaks: 'what a dead process left between two buckets is brought to its end',
    servers: (servers) => ({
      transfers: replaced(servers.transfers, {
        read: async (ref, buckets) => {
          const look = await servers.transfers.read(ref, buckets);
          return look === null ? null : { ...look, outgoing: [] };
        },
      }),
    }),
  },
  {
    name: 'old-cards-are-believed',
    breaks: 'who knows another number of buckets lets nobody in (rule 11)',
    servers: (servers) =>
      withStock(servers, {
        precheck: ({ saleId, bucket }, asked) => servers.stock.precheck({ saleId, bucket }, asked),
      }),
  },
  {
    name: 'settle-knows-one-bucket',
    breaks: 'a batch is settled wherever its buyers are now (rule 8)',
    servers: ({ settlement }) => ({
      settlement: replaced(settlement, {
        markRecorded: (settled) =>
          settlement.markRecorded(
            settled.map(({ batch, orders }) => ({ batch: { ...batch, epoch: Infinity }, orders })),
          ),
      }),
    }),
  },
];

function reorder(site: Site, batch: Batch, key: string, orderId: string): void {
  const { requests } = site.store.bucket(batch);
  const entry = requests.get(key);
  if (entry?.state === 'released') requests.set(key, { state: 'ordered', orderId, quantity: entry.quantity });
}

function giveAgain(site: Site, release: Release): void {
  const bucket = site.store.bucket(release);
  const entry = bucket.requests.get(purchaseKey(release));
  if (entry?.state === 'released' && release.withUnits) bucket.unitsLeft += entry.quantity;
}
