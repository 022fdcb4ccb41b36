import { expect } from 'chai';
import { request as httpRequest } from 'node:http';
import request from 'supertest';
import { OperationalError } from '../../../../src/core/errors.js';
import type { DeadLetter } from '../../../../src/core/ports/dead-letters.js';
import type { Sale } from '../../../../src/core/sale.js';
import { TOPICS } from '../../../../src/core/topics.js';
import type { DeadLetterServices } from '../../../../src/operate/dead-letters/services.js';
import { DeadLetterWorld } from './dead-letter-world.js';
import { bearer, FakeServices, startServer, until, type Started } from '../../http/http-harness.js';

const PATH = '/admin/v1/dead-letters/bulk';

interface Event {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

describe('admin: many dead letters at once', () => {
  let world: DeadLetterWorld;
  let server: Started;
  let fake: FakeServices;
  let sale: Sale;
  let replay: DeadLetterServices['deadLetters']['replay'];
  /** Runs before each replay or discard. */
  let onWork: (deadLetterId: string) => Promise<void>;
  /** The bulk action of the last request. */
  let signal: AbortSignal | undefined;
  beforeEach(async () => {
    world = new DeadLetterWorld();
    await world.minter.renew();
    world.onPublish = (batch) => world.work(batch);
    onWork = async () => undefined;
    sale = await world.openSale({ stock: 100, limitPerBuyer: 2 });
    const { admin } = world;
    replay = async (id, options) => {
      await onWork(id);
      return admin.replay(id, options);
    };
    const deadLetters: DeadLetterServices['deadLetters'] = {
      ...new FakeServices().services.deadLetters,
      list: (...page) => admin.list(...page),
      count: (filter) => admin.count(filter),
      parkedMatching: (...asked) => admin.parkedMatching(...asked),
      workThrough: (...order) => {
        signal = order[4];
        return admin.workThrough(...order);
      },
      replay: (id, options) => replay(id, options),
      discard: async (id, actor) => {
        await onWork(id);
        return admin.discard(id, actor);
      },
    };
    fake = new FakeServices({ deadLetters });
    server = await startServer(fake);
  });
  afterEach(() => server.stop());

  const parked = async (count: number): Promise<string[]> => {
    const ids: string[] = [];
    for (let nth = 0; nth < count; nth++) {
      ids.push((await world.parkedBatch(sale, [`buyer${world.deadLetters.deadLetters.length}`])).deadLetterId);
    }
    return ids;
  };
  /** A dead letter that cannot be replayed. */
  const broken = async (parts: Partial<DeadLetter> = {}): Promise<string> =>
    world.parkDeadLetter(await world.deducted(sale, ['eve']), { body: '{', batchId: null, ...parts });
  const post = (body: object, roles = ['operator']): request.Test =>
    request(server.operatorsUrl).post(PATH).set('authorization', bearer('ann', roles)).send(body);
  const eventsOf = (text: string): Event[] =>
    text.split('\n\n').flatMap((block) => {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/m.exec(block) ?? [];
      return event === undefined || data === undefined ? [] : [{ event, data: JSON.parse(data) as Event['data'] }];
    });
  const work = async (body: object, roles?: string[]): Promise<Event[]> => {
    const { text, type } = await post({ dryRun: false, ...body }, roles)
      .buffer(true)
      .expect(200);
    expect(type).to.equal('text/event-stream');
    return eventsOf(text);
  };
  const statesOf = (ids: readonly string[]): string[] => ids.map((id) => world.deadLetter(id).state);

  it('in a dry run, counts the matches, returns the first and changes nothing', async () => {
    const ids = await parked(22);
    const { body } = await post({ action: 'replay', filter: { saleId: sale.saleId }, dryRun: true }).expect(200);
    expect([body.matching, body.most, body.first.length]).to.deep.equal([22, 1000, 20]);
    expect(body.first[0]).to.include({ deadLetterId: ids[0], state: 'parked', originTopic: TOPICS.purchase });
    const some = await post({ action: 'replay', ids: [ids[3], '999'], dryRun: true }).expect(200);
    expect([some.body.matching, some.body.first[0].deadLetterId]).to.deep.equal([1, ids[3]]);
    expect(new Set(statesOf(ids))).to.deep.equal(new Set(['parked']));
    expect(world.deadLetters.audited).to.deep.equal([]);
  });

  it('replays the matches one by one, audits each, and reports progress', async () => {
    const ids = await parked(3);
    const other = await broken();
    let underWay = 0;
    onWork = async () => {
      expect(++underWay, 'one at a time').to.equal(1);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    };
    const events = await work({ action: 'replay', ids });
    expect(events.map(({ event }) => event)).to.deep.equal(['progress', 'progress', 'progress', 'end']);
    expect(events[1]?.data).to.deep.include({
      deadLetterId: ids[1],
      outcome: 'replayed',
      ok: true,
      handled: 2,
      of: 3,
    });
    expect(events[3]?.data).to.deep.equal({ done: 3, failed: 0, left: 0, stopped: null, failures: [] });
    expect(statesOf(ids)).to.deep.equal(['replayed', 'replayed', 'replayed']);
    expect(world.deadLetter(other).state).to.equal('parked');
    const audited = world.deadLetters.audited.map(({ actor, action, subject }) => `${actor} ${action} ${subject}`);
    expect(audited.filter((line) => line.startsWith('ann dead_letter.replayed'))).to.have.length(3);
  });

  it('requires an admin to discard', async () => {
    const ids = await parked(2);
    const { body } = await post({ action: 'discard', ids, dryRun: true }).expect(403);
    expect(body.code).to.equal('role_needed');
    expect(body.detail).to.include('admin');
    const events = await work({ action: 'discard', ids }, ['admin']);
    expect(events.at(-1)?.data).to.deep.include({ done: 2, failed: 0 });
    expect(statesOf(ids)).to.deep.equal(['discarded', 'discarded']);
    for (const row of world.mysql.allOrders) expect(row.state).to.equal('failed');
  });

  it('stops if a server fails, and reports the rest as not done', async () => {
    const ids = await parked(3);
    onWork = async (id) => {
      if (id === ids[1]) throw new OperationalError('redis', 'redis is away', { retryable: true });
    };
    const end = (await work({ action: 'replay', ids })).at(-1);
    expect(end?.data).to.deep.equal({
      done: 1,
      failed: 1,
      left: 1,
      stopped: 'fault',
      failures: [{ id: ids[1], why: 'fault: redis is away' }],
    });
    expect(statesOf(ids)).to.deep.equal(['replayed', 'parked', 'parked']);
  });

  it('stops after five replays in a row that no worker handles, and says so', async () => {
    const ids = await parked(8);
    let begun = 0;
    replay = async (id) => {
      const outcome = ++begun === 3 ? 'replayed' : 'unfinished'; // A handled replay resets the count.
      return { outcome, note: `of ${id}` };
    };
    const end = (await work({ action: 'replay', ids })).at(-1);
    expect(end?.data).to.deep.include({ done: 1, failed: 7, left: 0, stopped: null });
    begun = 3;
    const stuck = (await work({ action: 'replay', ids })).at(-1);
    expect(stuck?.data).to.deep.include({ done: 0, failed: 5, left: 3, stopped: 'unfinished' });
  });

  it('stops when the token of its caller expires', async () => {
    const ids = await parked(3);
    const hour = Date.now() + 3_600_000;
    fake.nowMs = () => hour - 1_500; // The token is valid for an hour.
    onWork = () => new Promise((resolve) => setTimeout(resolve, 2_000));
    const end = (await work({ action: 'replay', ids })).at(-1);
    expect(end?.data).to.deep.include({ done: 1, left: 2, stopped: 'time_up' });
  });

  it('stops after the current dead letter if the client leaves', async () => {
    const ids = await parked(3);
    let release = (): void => undefined;
    let begun = 0;
    onWork = () => {
      begun++;
      return new Promise((resolve) => (release = resolve));
    };
    const { port, hostname } = new URL(server.operatorsUrl);
    const headers = { authorization: bearer('ann', ['operator']), 'content-type': 'application/json' };
    const client = httpRequest({ port, hostname, path: PATH, method: 'POST', headers });
    client.on('error', () => undefined);
    client.end(JSON.stringify({ action: 'replay', ids, dryRun: false }));
    await until(() => begun === 1);
    const second = await post({ action: 'replay', ids, dryRun: false }).expect(503);
    expect(second.body.code).to.equal('overloaded');
    client.destroy();
    await until(() => signal?.aborted === true);
    release();
    await until(() => world.deadLetter(ids[0] as string).state === 'replayed');
    onWork = async () => undefined;
    let answer = second;
    while (answer.status === 503) answer = await post({ action: 'replay', ids, dryRun: false }).buffer(true);
    expect(eventsOf(answer.text).at(-1)?.data, 'two were left').to.deep.include({ done: 2, failed: 0 });
    expect(begun, 'no replay began after the client left').to.equal(1);
  });

  it('names each mistake in a request [S6]', async () => {
    const wrong: readonly [object, string][] = [
      [{ action: 'replay', dryRun: true }, 'body'],
      [{ action: 'replay', ids: ['1'], filter: {}, dryRun: true }, 'body'],
      [{ action: 'burn', ids: ['1'], dryRun: true }, 'action'],
      [{ action: 'replay', ids: [], dryRun: true }, 'ids'],
      [{ action: 'replay', ids: ['x'], dryRun: true }, 'ids.0'],
      [{ action: 'replay', ids: ['1'] }, 'dryRun'],
      [{ action: 'replay', filter: { state: 'replayed' }, dryRun: true }, 'filter.state'],
      [{ action: 'replay', filter: { since: 'now' }, dryRun: true }, 'filter.since'],
      [{ action: 'replay', ids: Array.from({ length: 1001 }, () => '1'), dryRun: true }, 'ids'],
    ];
    for (const [body, field] of wrong) {
      const answer = await post(body).expect(400);
      expect(answer.body.errors[0].field, JSON.stringify(body).slice(0, 80)).to.equal(field);
    }
  });
});
