import { expect } from 'chai';
import sinon from 'sinon';
import request from 'supertest';
import { RoomAdmin } from '../../../../src/operate/rules/room-admin.js';
import { roomCommand, setRate, steerRoom } from '../../../../src/operate/rules/room-commands.js';
import type { Found } from '../../../../src/operate/rules/where-in-force.js';
import { RuleAdmin } from '../../../../src/operate/rules/rule-admin.js';
import { rulesDocument } from '../../../../src/contract/rules.js';
import type { AuditEntry } from '../../../../src/core/ports/audit-log.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryLineStore } from '../../../helpers/memory/memory-line-store.js';
import { MemoryRuleBroadcast, MemoryRuleRepository } from '../../../helpers/memory/memory-rule-repository.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

describe('control of waiting rooms', () => {
  let server: Started;
  let rules: RuleAdmin;
  let room: RoomAdmin;
  let store: MemoryLineStore;
  let entries: AuditEntry[];
  beforeEach(async () => {
    const clock = new ManualClock();
    store = new MemoryLineStore(clock);
    entries = [];
    rules = new RuleAdmin({
      repository: new MemoryRuleRepository(),
      broadcast: new MemoryRuleBroadcast(),
      log: silentLog,
    });
    const audit = async (entry: AuditEntry): Promise<void> => void entries.push(entry);
    room = new RoomAdmin(rules, audit, store);
    server = await startServer(new FakeServices({ room }));
    const terms = { saleId: '7', opensAtMs: clock.nowMs(), byLot: false, perSecond: 0, turnMs: 1000 };
    const buyer = { priority: 2, lot: 0, ticket: null, waitingMax: 10, passMs: 1000 };
    for (const userId of ['a', 'b', 'c']) await store.take(terms, null, { userId, ...buyer });
  });
  afterEach(async () => {
    sinon.restore();
    await server.stop();
  });

  const show = async (saleId = '7'): Promise<unknown> =>
    (
      await request(server.operatorsUrl)
        .get(`/admin/v1/sales/${saleId}/waiting-room`)
        .set('authorization', bearer('eve', ['viewer']))
        .expect(200)
    ).body;
  const ask = (method: 'put' | 'post', path: string, body: object, roles = ['operator']): request.Test =>
    request(server.operatorsUrl)[method](`/admin/v1${path}`).set('authorization', bearer('boss', roles)).send(body);
  const rateInRules = async (): Promise<unknown> => {
    const shown = rulesDocument.parse(await rules.show()) as { rules: { queue: { admitPerSecond: number } } };
    return shown.rules.queue.admitPerSecond;
  };

  it('sets the rate in a new version of the rules, and refuses a rate below zero', async () => {
    const { body } = await ask('put', '/waiting-rooms/rate', { admitPerSecond: 12.5 }).expect(200);
    expect(body).to.deep.equal({ outcome: 'rate_set', version: 1, seenAtOnce: true, admitPerSecond: 12.5 });
    expect(await rateInRules()).to.equal(12.5);
    expect((await rules.history(1))[0]).to.include({ actor: 'boss' });
    await ask('put', '/waiting-rooms/rate', { admitPerSecond: -1 }).expect(400);
    await ask('put', '/waiting-rooms/rate', { admitPerSecond: 0 }, ['viewer']).expect(403);
    expect(await rateInRules()).to.equal(12.5);
  });

  it('shows the buyers, the rate and the wait of the last buyer', async () => {
    const publish = (queue: object, version: number) => rules.publish({ queue }, version, 'boss');
    await publish({ mode: 'on', sales: ['7'], admitPerSecond: 0.5 }, 0);
    const room7 = { version: 1, mode: 'on', admitPerSecond: 0.5, waiting: 3, admitted: 0, estimateMs: 6000 };
    expect(await show()).to.deep.equal(room7);
    await ask('post', '/sales/7/waiting-room', { action: 'admit', buyers: 2 }).expect(200);
    await ask('put', '/waiting-rooms/rate', { admitPerSecond: 0 }).expect(200);
    const paused = { ...room7, version: 2, admitPerSecond: 0 };
    expect(await show()).to.deep.equal({ ...paused, waiting: 1, admitted: 2, estimateMs: null });
    expect(await show('8'), 'no room').to.deep.equal({ ...paused, mode: 'off', waiting: 0, estimateMs: 0 });
  });

  it('admits buyers and empties the room in the name of the caller, and audits both', async () => {
    const steer = (body: object, saleId = '7'): request.Test => ask('post', `/sales/${saleId}/waiting-room`, body);
    expect((await steer({ action: 'admit', buyers: 2 }).expect(200)).body).to.deep.equal({
      outcome: 'admitted',
      buyers: 2,
    });
    expect((await steer({ action: 'empty' }).expect(200)).body).to.deep.equal({ outcome: 'emptied', buyers: 1 });
    expect(entries.map(({ actor, action, subject }) => `${actor} ${action} ${subject}`)).to.deep.equal([
      'boss room.admitted sale:7',
      'boss room.emptied sale:7',
    ]);
    for (const body of [{ action: 'admit', buyers: 0 }, { action: 'empty', buyers: 1 }, { action: 'open' }, {}]) {
      await steer(body).expect(400);
    }
    expect((await steer({ action: 'empty' }, '8').expect(404)).body).to.include({ code: 'not_found' });
    expect(entries.length, 'nothing more is audited').to.equal(2);
  });

  it('prints the number of buyers, and fails when the sale has no room', async () => {
    const lines: string[] = [];
    sinon.stub(console, 'log').callsFake((line: string) => void lines.push(line));
    await steerRoom(room, '7', 2, {});
    await steerRoom(room, '7', 'all_out', { json: true });
    const apis = [{ processId: 'p', host: 'h', pid: 1, version: 1, refused: null, canary: null, follows: true }];
    await setRate(room, 0, {}, async (version): Promise<Found> => ({ inForce: 'everywhere', version, apis }));
    sinon.restore();
    expect(lines).to.deep.equal([
      'Admitted 2 buyers.',
      '{"outcome":"emptied","buyers":1}',
      'Waiting rooms admit 0 buyers per second (version 1).',
      'Version 1 is in force in the only running api.',
    ]);
    const refused = await steerRoom(room, '8', 1, {}).catch((error: Error) => error.message);
    expect(refused).to.equal('no buyer has joined a waiting room of sale 8.');
  });

  it('refuses wrong arguments with exit code 2, before it opens a connection', async () => {
    for (const words of [
      ['rate', 'x'],
      ['rate', '-1'],
      ['rate', '100001'],
      ['admit', '7', '0'],
      ['admit', 'x', '1'],
    ]) {
      const command = roomCommand();
      for (const one of [command, ...command.commands])
        one.exitOverride().configureOutput({ writeErr: () => undefined });
      const error = await command.parseAsync(words, { from: 'user' }).catch((cause: { code: string }) => cause.code);
      expect(error, words.join(' ')).to.be.oneOf(['commander.invalidArgument', 'commander.unknownOption']);
    }
  });
});
