import { expect } from 'chai';
import fc from 'fast-check';
import {
  QueuePasses,
  WaitingRooms,
  type QueueAnswer,
  type TicketAnswer,
} from '../../../../src/admission/queue/waiting-rooms.js';
import { queueRules, type QueueRules } from '../../../../src/admission/queue/queue-rules.js';
import { readKeyring } from '../../../../src/core/hmac.js';
import { Seals } from '../../../../src/admission/sign/seals.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { noAdmissionMetrics } from '../../../helpers/no-metrics.js';

const KEYS = readKeyring('k1:a-secret-for-tickets-that-is-long-enough');
const seals = new Seals(KEYS);
/** Skips the HMACs in the test with a million buyers. */
const UNSEALED = { seal: () => 'ticket', open: () => null, lot: () => 0 } as unknown as Seals;
type Waiting = QueueAnswer & { outcome: 'waiting' };

describe('waiting rooms', () => {
  let clock: ManualClock;
  let rules: QueueRules;
  let soldOut: Set<string>;
  let rooms: WaitingRooms;
  let sale: { saleId: string; opensAtMs: number };

  const set = (raw: object = {}): void => void (rules = queueRules.parse({ mode: 'on', admitPerSecond: 1, ...raw }));
  const newRooms = (by = seals): WaitingRooms =>
    new WaitingRooms({ rules: () => rules, seals: by, isSoldOut: (saleId) => soldOut.has(saleId), clock });
  beforeEach(() => {
    clock = new ManualClock();
    set();
    soldOut = new Set();
    rooms = newRooms();
    sale = { saleId: '7', opensAtMs: clock.nowMs() + 10_000 };
  });

  const join = (userId: string, roles: string[] = []): QueueAnswer => rooms.join(sale, { userId, roles });
  const ticketOf = (answer: TicketAnswer): string => (answer as Waiting).ticket;
  const read = (userId: string, ticket: string): TicketAnswer => rooms.read(sale, { userId }, ticket);
  /** Advances the clock tick by tick, as the loop runs. */
  const elapse = (ms: number): void => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      rooms.runOnce();
    }
  };
  const positions = (...users: string[]): unknown[] =>
    users.map((userId) => {
      const answer = join(userId);
      return answer.outcome === 'waiting' ? answer.position : answer.outcome;
    });

  it('admit buyers in order of arrival, and show each buyer the place and the estimated wait', () => {
    expect(positions('a', 'b', 'c')).to.deep.equal([1, 2, 3]);
    expect((join('c') as Waiting).estimateMs).to.equal(13_000);
    elapse(10_000);
    expect(positions('a', 'b', 'c')).to.deep.equal([1, 2, 3]); // No buyer is admitted before the sale opens.
    elapse(1000);
    expect(positions('a', 'b', 'c')).to.deep.equal(['admitted', 1, 2]);
    elapse(1000);
    expect(positions('a', 'b', 'c')).to.deep.equal(['admitted', 'admitted', 1]);
    expect((join('c') as Waiting).estimateMs).to.equal(1000);
  });

  it('admit a higher class first, whenever it arrives', () => {
    join('late-2');
    join('vip', ['queue-p0']);
    join('member', ['x', 'queue-p1']);
    expect((join('vip') as Waiting).priority).to.equal('P0');
    expect(positions('vip', 'member', 'late-2')).to.deep.equal([1, 2, 3]);
    elapse(11_000);
    join('vip-2', ['queue-p0']);
    expect(positions('vip', 'vip-2', 'member', 'late-2')).to.deep.equal(['admitted', 1, 2, 3]);
  });

  it('keep the place of a buyer after a reload, with and without the ticket', () => {
    const ticket = ticketOf(join('a'));
    positions('b', 'c');
    expect(positions('a', 'b', 'a')).to.deep.equal([1, 2, 1]);
    expect((read('a', ticket) as Waiting).position).to.equal(1);
    expect(rooms.waiting).to.equal(3);
  });

  it('refuse a ticket of another buyer or sale, or a changed ticket', () => {
    const ticket = ticketOf(join('a'));
    expect(read('b', ticket)).to.deep.equal({ outcome: 'ticket_not_found' });
    expect(rooms.read({ ...sale, saleId: '8' }, { userId: 'a' }, ticket)).to.deep.equal({
      outcome: 'ticket_not_found',
    });
    expect(read('a', ticket.replace('.2.', '.0.'))).to.deep.equal({ outcome: 'ticket_not_found' });
    expect(read('a', 'x')).to.deep.equal({ outcome: 'ticket_not_found' });
  });

  it('assign places by lot only when the sale opens, and put late buyers behind', () => {
    set({ order: 'lot' });
    rooms = newRooms();
    const early = ['a', 'b', 'c', 'd'];
    for (const user of early) expect(join(user)).to.include({ position: null, estimateMs: null });
    elapse(10_000);
    expect(positions('late', 'later')).to.deep.equal([5, 6]);
    expect(new Set(positions(...early))).to.deep.equal(new Set([1, 2, 3, 4]));
  });

  it('give a buyer the same place by lot on every API, after any join or return', () => {
    set({ order: 'lot', admitPerSecond: 0 });
    const crowd = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 2, maxLength: 40 });
    fc.assert(
      fc.property(crowd, fc.stringMatching(/^[1-9][0-9]{0,9}$/), (users, saleId) => {
        sale = { saleId, opensAtMs: clock.nowMs() + 10_000 };
        const [one, other, restarted] = [newRooms(), newRooms(), newRooms()];
        const tickets = users.map((userId) => ticketOf(one.join(sale, { userId, roles: [] })));
        for (const userId of [...users].reverse()) other.join(sale, { userId, roles: [] });
        clock.advance(20_000);
        for (const [nth, ticket] of tickets.entries()) restarted.read(sale, { userId: users[nth] as string }, ticket);
        const placesIn = (room: WaitingRooms): unknown[] =>
          users.map((userId) => (room.join(sale, { userId, roles: [] }) as Waiting).position);
        const places = placesIn(one);
        expect([...places].sort()).to.deep.equal(users.map((_, nth) => nth + 1).sort());
        expect(placesIn(other)).to.deep.equal(places);
        expect(placesIn(restarted)).to.deep.equal(places);
      }),
    );
  });

  it('draw every order by lot with equal probability', () => {
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

  it('end the queue at once when the sale sells out, for polling and silent buyers', () => {
    const ticket = ticketOf(join('a'));
    positions('b', 'c');
    soldOut.add('7');
    expect(read('a', ticket)).to.deep.equal({ outcome: 'sold_out' });
    expect(rooms.waiting).to.equal(0);
    expect(join('d')).to.deep.equal({ outcome: 'sold_out' });
    soldOut.clear(); // Units were returned.
    positions('e', 'f');
    soldOut.add('7');
    rooms.runOnce();
    expect(rooms.waiting).to.equal(0);
  });

  it('drop the place of a buyer who stops polling, and keep the place of a buyer who polls', () => {
    set({ idleMs: 3000, admitPerSecond: 0 });
    const gone = ticketOf(join('gone'));
    join('stays');
    elapse(2000);
    for (let second = 2; second < 20; second++) {
      expect(positions('stays', 'late')).to.deep.equal(second < 3 ? [2, 3] : [1, 2]);
      elapse(1000);
    }
    expect(rooms.waiting).to.equal(2);
    expect(read('gone', gone)).to.deep.equal({ outcome: 'ticket_not_found' });
    expect(positions('stays', 'late', 'gone')).to.deep.equal([1, 2, 3]);
  });

  it('keep the line moving and drop absent buyers when the clock is set back by an hour', () => {
    set({ idleMs: 3000 });
    elapse(10_000);
    positions('a', 'b', 'c', 'd', 'gone');
    clock.step(-3_600_000);
    elapse(1000);
    expect(positions('a', 'b', 'c', 'd')).to.deep.equal(['admitted', 1, 2, 3]);
    elapse(2000);
    expect(positions('b', 'c', 'd')).to.deep.equal(['admitted', 'admitted', 1]);
    expect(rooms.waiting, 'gone has not polled').to.equal(1);
  });

  it('expire a pass, and put the buyer at the end with a new ticket', () => {
    set({ passMs: 2000, idleMs: 60_000, admitPerSecond: 0.1 });
    const ticket = ticketOf(join('a'));
    elapse(10_000);
    positions('b', 'c');
    elapse(10_000);
    expect(join('a').outcome).to.equal('admitted');
    elapse(2100);
    expect(read('a', ticket)).to.deep.equal({ outcome: 'ticket_not_found' });
    expect(positions('b', 'c', 'a')).to.deep.equal([1, 2, 3]);
  });

  it('rebuild a lost room in its order from the tickets of polling buyers', () => {
    const tickets = ['a', 'b', 'c', 'd'].map((userId) => {
      clock.advance(10);
      return [userId, ticketOf(join(userId, userId === 'd' ? ['queue-p1'] : []))] as const;
    });
    rooms = newRooms(); // Another process, or the same process after a restart.
    clock.advance(10);
    join('new');
    for (const [userId, ticket] of tickets.toReversed()) read(userId, ticket);
    expect(positions('d', 'a', 'b', 'c', 'new')).to.deep.equal([1, 2, 3, 4, 5]);
  });

  it('admit the share of each process', () => {
    set({ admitPerSecond: 10, processes: 5 });
    sale.opensAtMs = clock.nowMs();
    positions(...Array.from({ length: 50 }, (_, index) => `u${index}`));
    elapse(10_000);
    expect(50 - rooms.waiting).to.be.within(20, 21);
  });

  it('admit a buyer at once when the room is empty', () => {
    sale.opensAtMs = clock.nowMs() - 60_000;
    expect(positions('a', 'b', 'c')).to.deep.equal(['admitted', 'admitted', 1]); // The credit is one second and one place.
  });

  it('admit rate × time within 1 %, for any arrivals and departures', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 30, maxLength: 60 }),
        (admitPerSecond, gapsMs) => {
          set({ admitPerSecond, ticketsMax: 1_000_000, passMs: 3_600_000, idleMs: 3_600_000 });
          rooms = newRooms(UNSEALED);
          sale = { saleId: '7', opensAtMs: clock.nowMs() };
          let joined = 0;
          let passedMs = 0;
          for (const gapMs of gapsMs) {
            while (rooms.waiting < admitPerSecond + 2) join(`u${joined++}`);
            clock.advance(gapMs); // The loop may be late, but its last part of a tick is shorter than the second that a room catches up.
            passedMs += gapMs;
            rooms.runOnce();
            const due = (admitPerSecond * passedMs) / 1000;
            const tick = (admitPerSecond * 100) / 1000; // Buyers are admitted only at ticks.
            expect(joined - rooms.waiting).to.be.within(due * 0.99 - tick - 2, due * 1.01 + 2);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('apply new rules at once: off, a new rate and a full room', () => {
    set({ admitPerSecond: 0 });
    sale.opensAtMs = clock.nowMs();
    positions('a', 'b', 'c');
    elapse(30_000);
    expect(rooms.waiting).to.equal(3);
    expect((join('a') as Waiting).estimateMs).to.equal(null);
    set({ admitPerSecond: 100 });
    elapse(1100);
    expect(rooms.waiting).to.equal(0);
    set({ ticketsMax: 3 });
    expect(join('d')).to.deep.equal({ outcome: 'overloaded' });
    set({ mode: 'off' });
    expect(join('d')).to.deep.equal({ outcome: 'no_queue' });
    set({ sales: ['8'] });
    expect(join('d')).to.deep.equal({ outcome: 'no_queue' });
  });

  it('remove an empty room', () => {
    set({ idleMs: 1000 });
    join('a');
    elapse(1200);
    expect(rooms).to.have.property('waiting', 0);
    sale.opensAtMs = clock.nowMs() - 60_000; // The sale was moved. A room that still existed would have the old time.
    expect(positions('b')).to.deep.equal(['admitted']);
  });

  describe('the pass at the purchase', () => {
    let refused: string[];
    const passes = (): QueuePasses => {
      refused = [];
      const metrics = { ...noAdmissionMetrics, refused: (...words: string[]) => void refused.push(words.join(' ')) };
      return new QueuePasses({ rules: () => rules, seals: new Seals(KEYS), clock, metrics });
    };
    const admitted = (): string => {
      sale.opensAtMs = clock.nowMs();
      clock.advance(1000);
      const answer = join('a');
      return answer.outcome === 'admitted' ? answer.pass : 'none';
    };

    it('is accepted by every process for its buyer and sale until it expires', () => {
      const pass = admitted();
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

    it('cannot be replaced by a ticket', () => {
      expect(passes().check('7', 'a', ticketOf(join('a')))).to.equal('forbidden');
    });

    it('is counted and not required in a dry run, and not checked when off', () => {
      const guard = passes();
      set({ mode: 'dry_run' });
      expect(guard.check('7', 'a', undefined)).to.equal(null);
      set({ mode: 'off' });
      expect(guard.check('7', 'a', undefined)).to.equal(null);
      expect(refused).to.deep.equal(['queue no_pass dry_run']);
    });
  });
});
