import { expect } from 'chai';
import fc from 'fast-check';
import {
  QueuePasses,
  WaitingRooms,
  type QueueAnswer,
  type TicketAnswer,
} from '../../../../src/admission/queue/waiting-rooms.js';
import { queueRules, type QueueRules } from '../../../../src/admission/queue/queue-rules.js';
import { Seals } from '../../../../src/admission/sign/seals.js';
import { readKeyring } from '../../../../src/core/hmac.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryLineStore } from '../../../helpers/memory/memory-line-store.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';

const KEYS = readKeyring('k1:a-secret-for-tickets-that-is-long-enough');
const seals = new Seals(KEYS);
/** Skips computing the HMACs of a crowd. */
const UNSEALED = { seal: () => 'ticket', open: () => null, lot: () => 0 } as unknown as Seals;
type Waiting = QueueAnswer & { outcome: 'waiting' };

describe('waiting rooms', () => {
  let clock: ManualClock;
  let store: MemoryLineStore;
  let rules: QueueRules;
  let soldOut: Set<string>;
  let rooms: WaitingRooms;
  let sale: { saleId: string; opensAtMs: number };
  let counted: { admitted: number; ordered: number };

  const set = (raw: object = {}): void => void (rules = queueRules.parse({ mode: 'on', admitPerSecond: 1, ...raw }));
  const metrics = {
    moved: (
      ...[from, to, perSecond, forMs]: Parameters<ConstructorParameters<typeof WaitingRooms>[0]['metrics']['moved']>
    ) => {
      counted.admitted += sum(to.admitted) - sum(from.admitted);
      counted.ordered += (perSecond * forMs) / 1000;
    },
  };
  /** Another process. */
  const newRooms = (by = seals): WaitingRooms =>
    new WaitingRooms({
      rules: () => rules,
      seals: by,
      store,
      isSoldOut: (saleId) => soldOut.has(saleId),
      clock,
      metrics,
    });
  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryLineStore(clock);
    counted = { admitted: 0, ordered: 0 };
    set();
    soldOut = new Set();
    rooms = newRooms();
    sale = { saleId: '7', opensAtMs: clock.nowMs() + 10_000 };
  });

  const join = (userId: string, roles: string[] = [], at = rooms): Promise<QueueAnswer> =>
    at.join(sale, { userId, roles });
  const ticketOf = (answer: TicketAnswer): string => (answer as Waiting).ticket;
  const read = (userId: string, ticket: string, at = rooms): Promise<TicketAnswer> => at.read(sale, { userId }, ticket);
  /** Advances the clock tick by tick, as the loop does. */
  const elapse = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await rooms.runOnce();
    }
  };
  const positions = async (...users: string[]): Promise<unknown[]> => {
    const places = [];
    for (const userId of users) {
      const answer = await join(userId);
      places.push(answer.outcome === 'waiting' ? answer.position : answer.outcome);
    }
    return places;
  };

  it('admit buyers in order of arrival, and show their place and an estimated wait', async () => {
    expect(await positions('a', 'b', 'c')).to.deep.equal([1, 2, 3]);
    expect(((await join('c')) as Waiting).estimateMs).to.equal(13_000);
    await elapse(9_900);
    expect(await positions('a', 'b', 'c')).to.deep.equal([1, 2, 3]); // No buyer is admitted before the sale opens.
    await elapse(1100);
    expect(await positions('a', 'b', 'c')).to.deep.equal(['admitted', 1, 2]);
    await elapse(1000);
    expect(await positions('a', 'b', 'c')).to.deep.equal(['admitted', 'admitted', 1]);
    expect(((await join('c')) as Waiting).estimateMs).to.equal(1000);
  });

  it('admit a higher class first, whenever it arrives', async () => {
    await join('late-2');
    await join('vip', ['queue-p0']);
    await join('member', ['x', 'queue-p1']);
    expect(((await join('vip')) as Waiting).priority).to.equal('P0');
    expect(await positions('vip', 'member', 'late-2')).to.deep.equal([1, 2, 3]);
    await elapse(11_000);
    await join('vip-2', ['queue-p0']);
    expect(await positions('vip', 'vip-2', 'member', 'late-2')).to.deep.equal(['admitted', 1, 2, 3]);
  });

  it('give a buyer one place, on every process, with and without the ticket', async () => {
    const ticket = ticketOf(await join('a'));
    await positions('b', 'c');
    const other = newRooms();
    expect(await join('a', [], other)).to.include({ position: 1 });
    expect(await read('a', ticket, other)).to.include({ position: 1 });
    expect(await join('a', ['queue-p0'], other), 'with a better class').to.include({ priority: 'P2', position: 1 });
    expect(await join('d', [], other)).to.include({ position: 4 });
    await rooms.runOnce();
    expect([rooms.waiting, other.waiting]).to.deep.equal([4, 4]);
  });

  it('refuse a changed ticket, and a ticket of another buyer or sale', async () => {
    const ticket = ticketOf(await join('a'));
    const notFound = { outcome: 'ticket_not_found' };
    expect(await read('b', ticket)).to.deep.equal(notFound);
    expect(await rooms.read({ ...sale, saleId: '8' }, { userId: 'a' }, ticket)).to.deep.equal(notFound);
    expect(await read('a', ticket.replace('.2.', '.0.'))).to.deep.equal(notFound);
    expect(await read('a', 'x')).to.deep.equal(notFound);
  });

  it('answer a waiting buyer from the last read of the line, without a call', async () => {
    set({ admitPerSecond: 0 });
    const tickets = [];
    for (let nth = 0; nth < 50; nth++) tickets.push(ticketOf(await join(`u${nth}`)));
    store.asked = 0;
    for (const [nth, ticket] of tickets.entries()) expect((await read(`u${nth}`, ticket)).outcome).to.equal('waiting');
    expect(store.asked).to.equal(0);
    clock.advance(1001);
    await Promise.all(tickets.map((ticket, nth) => read(`u${nth}`, ticket)));
    expect(store.asked, 'all share one read of an old line').to.equal(1);
  });

  it('show places while the store is down, but refuse a new buyer', async () => {
    const ticket = ticketOf(await join('a'));
    store.down = true;
    await elapse(5000);
    expect(await read('a', ticket)).to.include({ outcome: 'waiting', position: 1 });
    const refused = await join('b').then(
      () => 'answered',
      (error: Error) => error.message,
    );
    expect(refused).to.equal('memory line store is down');
  });

  it('derive the lot of a buyer from the seal alone, on every process', async () => {
    set({ order: 'lot', admitPerSecond: 0 });
    const crowd = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(crowd, fc.stringMatching(/^[1-9][0-9]{0,9}$/), async (users, saleId) => {
        store.lose();
        sale = { saleId, opensAtMs: clock.nowMs() + 10_000 };
        const processes = [newRooms(), newRooms(), newRooms()] as const;
        for (const [nth, userId] of users.entries()) await join(userId, [], processes[nth % 2]);
        clock.advance(20_000);
        const drawn = [...users].sort((one, other) => seals.lot(saleId, one) - seals.lot(saleId, other));
        for (const [nth, userId] of drawn.entries()) {
          expect(await join(userId, [], processes[nth % 3])).to.include({ position: nth + 1 });
        }
      }),
      { numRuns: 50 },
    );
  });

  it('draw every order of buyers with equal probability', () => {
    const seen = new Map<string, number>();
    for (let saleId = 1; saleId <= 6000; saleId++) {
      const lots = ['a', 'b', 'c'].map((userId) => [seals.lot(String(saleId), userId), userId] as const);
      const order = lots
        .sort(([one], [other]) => one - other)
        .map(([, userId]) => userId)
        .join('');
      seen.set(order, (seen.get(order) ?? 0) + 1);
    }
    expect([...seen.keys()].sort()).to.deep.equal(['abc', 'acb', 'bac', 'bca', 'cab', 'cba']);
    for (const [order, times] of seen) expect(times, order).to.be.within(900, 1100); // Expected: 1000, with σ = 29.
  });

  it('answer sold_out while the sale has no units, but keep the places', async () => {
    const ticket = ticketOf(await join('a'));
    soldOut.add('7');
    expect(await read('a', ticket)).to.deep.equal({ outcome: 'sold_out' });
    expect(await join('d')).to.deep.equal({ outcome: 'sold_out' });
    expect(rooms.waiting).to.equal(0);
    soldOut.clear(); // units were returned
    expect(await positions('d', 'a')).to.deep.equal([2, 1]);
    soldOut.add('7');
    await rooms.runOnce();
    expect(rooms.waiting, 'a silent room').to.equal(0);
  });

  it('keep the line moving if the clock is set back by an hour', async () => {
    await elapse(10_000);
    await positions('a', 'b', 'c', 'd', 'e');
    clock.step(-3_600_000);
    await elapse(1100);
    expect(await positions('a', 'b', 'c')).to.deep.equal(['admitted', 1, 2]);
  });

  it('expire a pass, and put the buyer at the end with a new ticket', async () => {
    set({ passMs: 2000, admitPerSecond: 0.1 });
    const ticket = ticketOf(await join('a'));
    await elapse(10_000);
    await positions('b', 'c');
    await elapse(10_000);
    expect((await join('a')).outcome).to.equal('admitted');
    await elapse(2100);
    expect(await read('a', ticket)).to.deep.equal({ outcome: 'ticket_not_found' });
    expect(await positions('b', 'c', 'a')).to.deep.equal([1, 2, 3]);
  });

  it('keep all places if the store loses everything but the processes survive', async () => {
    set({ admitPerSecond: 2 });
    sale.opensAtMs = clock.nowMs();
    const tickets: string[] = [];
    for (let nth = 0; nth < 20; nth++) tickets.push(ticketOf(await join(`u${nth}`)));
    await elapse(2000);
    const before = (await read('u19', tickets[19] as string)) as Waiting;
    store.lose();
    expect(await join('new')).to.include({ position: (before.position as number) + 1 });
    const after = (await read('u19', before.ticket, newRooms())) as Waiting;
    expect(after.position).to.equal(before.position);
    expect(await positions('u19'), 'without the ticket').to.deep.equal([(before.position as number) + 2]);
    expect(await read('u19', before.ticket)).to.include({ position: before.position });
    await elapse(12_000);
    expect((await read('u19', before.ticket)).outcome, 'when the number of the ticket has its turn').to.equal(
      'admitted',
    );
    expect((await join('u19')).outcome).to.equal('admitted');
  });

  it('never show a buyer a worse place because another process has read an older line', async () => {
    set({ admitPerSecond: 5 });
    sale.opensAtMs = clock.nowMs();
    const other = newRooms();
    for (let nth = 0; nth < 9; nth++) await join(`u${nth}`, [], other);
    let place = (await join('last', [], other)) as Waiting;
    await elapse(800); // this process reads, the other does not
    place = (await read('last', place.ticket)) as Waiting;
    const seen = place.position as number;
    expect(((await read('last', place.ticket, other)) as Waiting).position).to.equal(seen);
  });

  for (const apis of [1, 2, 4]) {
    it(`admit at the set rate with ${apis} processes, even when a process is killed or added`, async () => {
      set({ admitPerSecond: 200 });
      sale.opensAtMs = clock.nowMs();
      const processes = Array.from({ length: apis }, () => newRooms());
      const places = new Map<string, { ticket: string; position: number }>();
      const admitted: string[] = [];
      let next = 0;
      for (; next < 6000; next++) {
        const answer = await join(`u${next}`, [], processes[next % apis]);
        if (answer.outcome === 'waiting')
          places.set(`u${next}`, { ticket: answer.ticket, position: answer.position as number });
        else admitted.push(`u${next}`);
      }
      for (let step = 1; step <= 100; step++) {
        clock.advance(200);
        if (step === 30) processes.push(newRooms());
        if (step === 60) processes.shift();
        const at = processes[step % processes.length] as WaitingRooms;
        await Promise.all(processes.map((each) => each.runOnce()));
        const due = [...places].slice(0, 60);
        for (const [userId, { ticket, position }] of due) {
          const answer = await read(userId, ticket, at);
          if (answer.outcome === 'waiting') {
            expect(answer.position, userId).to.be.at.most(position);
            places.set(userId, { ticket: answer.ticket, position: answer.position as number });
          } else {
            expect(answer.outcome).to.equal('admitted');
            admitted.push(userId);
            places.delete(userId);
          }
        }
        const turns = 6000 - at.waiting;
        const ordered = 200 * step * 0.2 + 1;
        expect(turns, `after ${step} steps`).to.be.within(ordered * 0.97 - 1, ordered * 1.03);
      }
      expect(new Set(admitted).size, 'nobody twice').to.equal(admitted.length);
      expect(admitted, 'in the order of arrival').to.deep.equal(admitted.map((_, nth) => `u${nth}`));
      expect(counted.admitted).to.be.closeTo(counted.ordered, 0.03 * counted.ordered);
    });
  }

  it('admit a buyer to an empty room at once', async () => {
    sale.opensAtMs = clock.nowMs() - 60_000;
    // The room has saved up the turns of one second and one more place.
    expect(await positions('a', 'b', 'c')).to.deep.equal(['admitted', 'admitted', 1]);
  });

  it('admit rate × time buyers within 1 %, for any arrivals', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 30, maxLength: 60 }),
        async (admitPerSecond, gapsMs) => {
          set({ admitPerSecond });
          store.lose();
          rooms = newRooms(UNSEALED);
          sale = { saleId: '7', opensAtMs: clock.nowMs() };
          let joined = 0;
          let passedMs = 0;
          for (const gapMs of gapsMs) {
            for (let missing = admitPerSecond + 2 - rooms.waiting; missing > 0; missing--) await join(`u${joined++}`);
            clock.advance(gapMs);
            passedMs += gapMs;
            await rooms.runOnce();
            const due = (admitPerSecond * passedMs) / 1000;
            expect(joined - rooms.waiting).to.be.within(due * 0.99 - 2, due * 1.01 + 2);
          }
        },
      ),
      { numRuns: 20 },
    );
  });

  it('admit no buyer during a pause, not even to a free place', async () => {
    set({ admitPerSecond: 5 });
    sale.opensAtMs = clock.nowMs();
    await positions('a');
    await elapse(5000);
    set({ admitPerSecond: 0 });
    expect(await positions('a', 'b')).to.deep.equal(['admitted', 1]);
  });

  it('apply new rules at once: off, a new rate and a full room', async () => {
    set({ admitPerSecond: 0 });
    sale.opensAtMs = clock.nowMs();
    await positions('a', 'b', 'c', 'd');
    await elapse(30_000);
    expect(rooms.waiting).to.equal(4);
    expect(((await join('d')) as Waiting).estimateMs).to.equal(null);
    set({ admitPerSecond: 0, ticketsMax: 4 });
    expect(await join('e')).to.deep.equal({ outcome: 'overloaded' });
    expect(await join('d'), 'a buyer with a place').to.include({ outcome: 'waiting' });
    set({ admitPerSecond: 100 });
    await elapse(1100);
    expect(rooms.waiting).to.equal(0);
    set({ mode: 'off' });
    expect(await join('d')).to.deep.equal({ outcome: 'no_queue' });
    set({ sales: ['8'] });
    expect(await join('d')).to.deep.equal({ outcome: 'no_queue' });
  });

  describe('the pass at the purchase', () => {
    let refused: string[];
    const passes = (): QueuePasses => {
      refused = [];
      const metrics = { ...noAdmissionMetrics, refused: (...words: string[]) => void refused.push(words.join(' ')) };
      return new QueuePasses({ rules: () => rules, seals: new Seals(KEYS), clock, metrics });
    };
    const admitted = async (): Promise<string> => {
      sale.opensAtMs = clock.nowMs();
      clock.advance(1000);
      const answer = await join('a');
      return answer.outcome === 'admitted' ? answer.pass : 'none';
    };

    it('is accepted by every process for its buyer and sale until it expires', async () => {
      const pass = await admitted();
      const guard = passes();
      expect(guard.check('7', 'a', pass)).to.equal(null);
      expect(guard.check('7', 'b', pass)).to.equal('forbidden');
      expect(guard.check('8', 'a', pass)).to.equal('forbidden');
      expect(guard.check('7', 'a', undefined)).to.equal('forbidden');
      clock.advance(rules.passMs - 1);
      expect(guard.check('7', 'a', pass)).to.equal(null);
      clock.advance(1);
      expect(guard.check('7', 'a', pass)).to.equal('forbidden');
      expect(refused).to.deep.equal(['bad_pass', 'bad_pass', 'no_pass', 'ended'].map((word) => `queue ${word} on`));
    });

    it('cannot be replaced by a ticket', async () => {
      expect(passes().check('7', 'a', ticketOf(await join('a')))).to.equal('forbidden');
    });

    it('is counted but not required in a dry run, and not checked when off', () => {
      const guard = passes();
      set({ mode: 'dry_run' });
      expect(guard.check('7', 'a', undefined)).to.equal(null);
      set({ mode: 'off' });
      expect(guard.check('7', 'a', undefined)).to.equal(null);
      expect(refused).to.deep.equal(['queue no_pass dry_run']);
    });
  });
});

const sum = (figures: readonly number[]): number => figures.reduce((total, figure) => total + figure, 0);
