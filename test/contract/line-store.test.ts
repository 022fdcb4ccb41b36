import { expect } from 'chai';
import type { Line, LineTerms, PlaceAsk, TakenPlace } from '../../src/core/ports/line-store.js';
import { freshSaleId } from '../helpers/sales.js';
import { onEachWorld } from './on-each-world.js';
import { STORE_WORLDS, type StoreWorld } from './store-worlds.js';

/** No test takes this long. */
const LONG_MS = 600_000;

onEachWorld<StoreWorld>('contract LineStore', STORE_WORLDS, (world) => {
  let terms: LineTerms;
  beforeEach(async () => {
    const opensAtMs = await world.nowMs();
    terms = { saleId: freshSaleId(), opensAtMs, byLot: false, perSecond: 0, turnMs: LONG_MS };
  });

  const take = (userId: string, parts: Partial<PlaceAsk> = {}, known: Line | null = null): Promise<TakenPlace> =>
    world.lines.take(terms, known, {
      ...{ userId, priority: 2, lot: 0, ticket: null, waitingMax: 1000, passMs: LONG_MS },
      ...parts,
    });
  const brief = ({ word, priority, number }: TakenPlace): string => `${word} ${priority} ${number}`;
  const opens = (inMs: number): void => void (terms = { ...terms, opensAtMs: terms.opensAtMs + inMs });
  const ticketOf = ({ line, number, priority }: TakenPlace) => ({
    epoch: line.epoch,
    number,
    admitted: line.admitted[priority as 0 | 1 | 2],
  });
  const briefly = async (userId: string, parts: Partial<PlaceAsk> = {}): Promise<string> =>
    brief(await take(userId, parts));

  it('numbers the buyers of each class, and gives each buyer one place', async () => {
    const places = [];
    for (const user of ['a', 'b', 'a']) places.push(await briefly(user));
    places.push(await briefly('p', { priority: 0 }), await briefly('a', { priority: 0 }));
    expect(places).to.deep.equal(['waiting 2 1', 'waiting 2 2', 'waiting 2 1', 'waiting 0 1', 'waiting 2 1']);
    const line = await world.lines.read(terms, null);
    expect(line).to.deep.include({ epoch: 1, byLot: false, opened: true, joined: [1, 0, 2], admitted: [0, 0, 0] });
  });

  it('admits buyers from the opening on at the set rate, higher classes first', async () => {
    opens(3000);
    terms = { ...terms, perSecond: 100 };
    const buyers = Array.from({ length: 500 }, (_, nth) => take(`u${nth}`));
    await Promise.all([...buyers, ...Array.from({ length: 10 }, (_, nth) => take(`p${nth}`, { priority: 0 }))]);
    expect((await world.lines.read(terms, null)).admitted).to.deep.equal([0, 0, 0]);
    await world.elapse(Math.max(0, terms.opensAtMs - (await world.nowMs())));
    await world.lines.read(terms, null); // A call within a second loses no turns.
    for (let look = 0; look < 4; look++) {
      await world.elapse(500);
      const beforeMs = await world.nowMs();
      const { admitted } = await world.lines.read(terms, null);
      const afterMs = await world.nowMs();
      const due = (atMs: number): number => (atMs - terms.opensAtMs) / 10;
      expect(admitted[0]).to.equal(10);
      expect(admitted[0] + admitted[2]).to.be.within(Math.floor(due(beforeMs)) - 1, due(afterMs) + 1);
    }
  });

  it('saves up no more than one second of turns plus one place', async () => {
    opens(-3_600_000);
    terms = { ...terms, perSecond: 5 };
    const words = [];
    for (let nth = 0; nth < 20; nth++) words.push((await take(`u${nth}`)).word);
    expect(words.slice(0, 6)).to.deep.equal(Array(6).fill('admitted'));
    expect(words).to.include('waiting');
  });

  it('gives one pass per turn, then a new place at the end of the line', async () => {
    opens(-3_600_000);
    terms = { ...terms, perSecond: 0.001 };
    const [first, again] = [await take('a', { passMs: 1000 }), await take('a')];
    expect([brief(first), brief(again)]).to.deep.equal(['admitted 2 1', 'admitted 2 1']);
    expect(again.untilMs).to.equal(first.untilMs);
    expect(first.untilMs - (await world.nowMs())).to.be.within(-1000, 1000);
    terms = { ...terms, perSecond: 0 };
    await world.elapse(1100);
    await take('b');
    expect(await briefly('a', { ticket: ticketOf(first) })).to.equal('ended 2 1');
    expect(await briefly('a')).to.equal('waiting 2 3');
  });

  it('draws lots before the opening, and places later buyers behind', async () => {
    opens(1000);
    terms = { ...terms, byLot: true };
    for (const [user, lot] of [
      ['a', 0.9],
      ['b', 0.1],
      ['c', 0.5],
    ] as const) {
      expect(await briefly(user, { lot })).to.equal('waiting 2 0');
    }
    const early = await take('p', { priority: 0, lot: 0.3 });
    expect(await briefly('a', { priority: 0, lot: 0.9 }), 'again').to.equal('waiting 2 0');
    expect((await world.lines.read(terms, null)).joined).to.deep.equal([1, 0, 3]);
    await world.elapse(Math.max(0, terms.opensAtMs - (await world.nowMs())));
    expect(await briefly('late', { lot: 0 })).to.equal('waiting 2 4');
    const drawn = [];
    for (const user of ['a', 'b', 'c', 'late']) drawn.push(await briefly(user));
    expect(drawn).to.deep.equal(['waiting 2 3', 'waiting 2 1', 'waiting 2 2', 'waiting 2 4']);
    expect(await briefly('p', { priority: 0, ticket: ticketOf(early) })).to.equal('waiting 0 1');
    expect(await briefly('lost', { ticket: ticketOf(early), lot: 0.01 }), 'whose lot was lost').to.equal('waiting 2 5');
  });

  it('ends a turn that is not used within two periods', async () => {
    opens(-3_600_000);
    terms = { ...terms, perSecond: 100, turnMs: 300 };
    await take('a', { passMs: 1 });
    await take('b');
    const known = await world.lines.read(terms, null);
    const unused = { epoch: known.epoch, number: 1, admitted: 0 };
    for (let period = 0; period < 3; period++) {
      await world.elapse(300);
      await world.lines.read(terms, null);
    }
    expect(await briefly('c', { ticket: unused })).to.equal('ended 2 1');
    expect(await briefly('c')).to.equal('admitted 2 3');
  });

  it('refuses a new buyer if the room is full, but never a buyer who has a place', async () => {
    await take('a');
    await take('b');
    expect(await briefly('c', { waitingMax: 2 })).to.equal('overloaded 2 0');
    expect(await briefly('a', { waitingMax: 2 })).to.equal('waiting 2 1');
  });

  it('restores numbers from a ticket or from the line of the caller, and never lowers a number', async () => {
    const ticket = { epoch: 1, number: 50, admitted: 20 };
    expect(await briefly('a', { ticket })).to.equal('waiting 2 50');
    const known = await world.lines.read(terms, null);
    expect(known).to.deep.include({ joined: [0, 0, 50], admitted: [0, 0, 20] });
    terms = { ...terms, saleId: freshSaleId() }; // the store has lost the room
    expect(brief(await take('b', {}, known))).to.equal('waiting 2 51');
    const ahead = { ...known, joined: [7, 0, 60], admitted: [7, 0, 10], opened: true } as unknown as Line;
    const merged = await world.lines.read(terms, ahead);
    expect(merged).to.deep.include({ joined: [7, 0, 60], admitted: [7, 0, 20] });
  });

  it('admits as many buyers as an operator requests, once the sale is open', async () => {
    expect(await world.lines.steer(terms.saleId, 2)).to.deep.equal({ word: 'no_room', buyers: 0 });
    opens(600_000);
    for (const user of ['a', 'b', 'c']) await take(user);
    expect(await world.lines.steer(terms.saleId, 2)).to.deep.equal({ word: 'not_open', buyers: 0 });
    opens(-600_000);
    await world.lines.read(terms, null);
    expect(await world.lines.steer(terms.saleId, 2)).to.deep.equal({ word: 'admitted', buyers: 2 });
    expect(await world.lines.steer(terms.saleId, 9)).to.deep.equal({ word: 'admitted', buyers: 1 });
    expect(await world.lines.read(terms, null)).to.deep.include({ admitted: [0, 0, 3], granted: 3 });
  });

  it('shows the line without moving it, and null for a sale without a line', async () => {
    expect(await world.lines.look(terms.saleId)).to.equal(null);
    for (const user of ['a', 'b', 'c']) await take(user);
    terms = { ...terms, perSecond: 1000 };
    await world.elapse(50);
    const shown = await world.lines.look(terms.saleId);
    expect(shown).to.deep.include({ epoch: 1, opened: true, joined: [0, 0, 3], admitted: [0, 0, 0], granted: 0 });
    expect(await world.lines.read(terms, null)).to.deep.include({ admitted: [0, 0, 3] });
  });

  it('ends every place and ticket when an operator empties the room', async () => {
    const before = await take('a');
    await take('b');
    expect(await world.lines.steer(terms.saleId, 'all_out')).to.deep.equal({ word: 'emptied', buyers: 2 });
    expect(await briefly('c')).to.equal('waiting 2 1');
    expect(await briefly('a', { ticket: ticketOf(before) })).to.equal('ended 2 1');
    const { line } = await take('a', {}, before.line);
    expect(line, 'a caller that has not seen it').to.deep.include({ epoch: 2, joined: [0, 0, 2] });
    terms = { ...terms, saleId: freshSaleId() }; // the server has lost the emptying
    await take('a');
    expect(await world.lines.read(terms, line)).to.deep.include({ epoch: 2, joined: [0, 0, 2] });
  });
});
