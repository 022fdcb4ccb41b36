import { DEAD_LETTERS, GROUPS, TOPICS } from '../../../src/domain/topics.js';
import { collectDeadLetters } from '../../../src/keeper/collect-dead-letters.js';
import { consume } from '../../../src/keeper/consume.js';
import { expireOrders } from '../../../src/keeper/expire-orders.js';
import { expireUnpaid } from '../../../src/keeper/expire-unpaid.js';
import { keepRunning, type Job } from '../../../src/keeper/job.js';
import { gatherMoved, gatherRecorded, publishMoved, publishRecorded } from '../../../src/keeper/publish-orders.js';
import { redrive } from '../../../src/keeper/redrive.js';
import { relayOutbox } from '../../../src/keeper/relay-outbox.js';
import { releaseUnits } from '../../../src/keeper/release-units.js';
import { settleRecorded } from '../../../src/keeper/settle-recorded.js';
import type { KeeperMeters } from '../../../src/ports/keeper-meters.js';
import { memoryOrderChannels } from '../../helpers/memory/memory-order-channels.js';
import { Life, NEVER_ABORTED } from '../engine/life.js';
import { through } from '../engine/through.js';
import { onBug, type Site } from '../site.js';
import { sourceOf } from './source.js';

const RESTART_MAX_MS = 6_000;
const BATCHES_PER_RUN = 100;

/** A keeper process with the jobs that the program has, but coupons, tidying and the watching ones. */
export class Keeper {
  readonly #site: Site;
  readonly #name: string;

  constructor(site: Site, name: string) {
    this.#site = site;
    this.#name = name;
    this.start();
  }

  start(): void {
    const { scheduler, rng, shape, log } = this.#site;
    const life = new Life(this.#site, this.#name);
    life.onDeath(() => {
      this.#site.count('process: keeper died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    const meters = metersOf(this.#site);
    for (const job of [...menders(life, this.#site, meters), ...relays(life, this.#site, meters)]) {
      const everyMs = job.name.startsWith('co') ? 200 : shape.jobEveryMs; // these wait for messages by themselves
      keepRunning(job, everyMs, NEVER_ABORTED, { clock: life.clock, log, meters }).catch(onBug(this.#site));
    }
  }
}

function menders(life: Life, site: Site, meters: KeeperMeters): Job[] {
  const { shape, books, log, broker } = site;
  const { clock } = life;
  const sales = through(life, 'mysql', books, ['list']);
  const book = through(life, 'mysql', books, ['findByPurchases']);
  const moves = through(life, 'mysql', site.servers.moves, ['expire', 'expireDue', 'overdue']);
  const letters = through(life, 'mysql', site.letters, ['park']);
  const ledger = through(life, 'redis', site.servers.settlement, ['withPending', 'stalePending', 'settle', 'park']);
  const channel = through(life, 'rocketmq', broker.redriveChannel(), ['publish']);
  const orders = through(life, 'mysql', { statesOf: statesIn(site) }, ['statesOf']);
  const collectors = ([GROUPS.writer, GROUPS.redriveWriter] as const).map((group) => {
    const { topic, collector } = DEAD_LETTERS[group];
    const source = sourceOf(life, site, { topic, group: collector, invisibleMs: shape.invisibleMs });
    return collectDeadLetters({ source, letters, ledger, book, log, meters }, { group, topic });
  });
  const expirer = { topic: TOPICS.paymentDeadline, group: GROUPS.expirer };
  return [
    settleRecorded({ sales, ledger, book, meters }, { afterMs: shape.settleAfterMs, max: BATCHES_PER_RUN }),
    ...(site.rules.redrives
      ? [redrive({ sales, ledger, channel, clock, log, meters }, { afterMs: shape.redriveAfterMs, max: 50 })]
      : []),
    expireOrders({ moves, meters }, { max: 1_000 }),
    ...collectors,
    consume(
      {
        source: sourceOf(life, site, { ...expirer, invisibleMs: shape.invisibleMs }),
        ready: () => life.call('mysql', 'probe', async () => undefined, []),
        handle: expireUnpaid({ moves, orders, meters }),
        letters: site.letters,
        ...{ log, meters },
      },
      expirer,
    ),
  ];
}

function relays(life: Life, site: Site, meters: KeeperMeters): Job[] {
  const { shape, log } = site;
  const outbox = through(life, 'mysql', site.servers.outbox, ['lease', 'markDone', 'postpone']);
  const ledger = through(life, 'redis', site.servers.settlement, ['release']);
  const memory = memoryOrderChannels(site.broker);
  const deadlines = through(life, 'rocketmq', memory.deadlines, ['publish']);
  const events = through(life, 'rocketmq', memory.events, ['publish']);
  const ports = { outbox, log, meters };
  const lease = { max: 64, leaseMs: shape.outboxLeaseMs };
  return [
    relayOutbox(
      { ...ports, keep: publishRecorded({ deadlines, events }), gather: gatherRecorded },
      { ...lease, kind: 'batch_recorded' },
    ),
    relayOutbox({ ...ports, keep: publishMoved({ events }), gather: gatherMoved }, { ...lease, kind: 'orders_moved' }),
    relayOutbox({ ...ports, keep: releaseUnits({ ledger, meters }) }, { ...lease, kind: 'release' }),
  ];
}

/** The read that MySQL has for it: where these orders stand. */
function statesIn({ books }: Site) {
  return async (orderIds: readonly string[]) =>
    new Map(books.allOrders.filter(({ orderId }) => orderIds.includes(orderId)).map((o) => [o.orderId, o.state]));
}

function metersOf(site: Site): KeeperMeters {
  const some = (what: string) => (number: number) => {
    if (number > 0) site.count(`keeper: ${what}`);
  };
  return {
    jobRan: (_, result) => site.count(`job: ${result}`),
    redriven: some('re-driven'),
    settledLate: some('settled late'),
    released: some('released'),
    expired: some('expired'),
    overdue: () => undefined,
    parked: some('parked'),
    pending: () => undefined,
    relayed: (kind, result, rows) => {
      if (rows > 0) site.count(`relay: ${kind} ${result}`);
    },
    backlog: () => undefined,
    removed: () => undefined,
    consumed: (_, verdict) => site.count(`consumed: ${verdict}`),
    couponsIssued: () => undefined,
  };
}
