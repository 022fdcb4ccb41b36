import { expect } from 'chai';
import request from 'supertest';
import { RuleAdmin } from '../../../../src/operate/rules/rule-admin.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import {
  MemoryRuleBroadcast,
  MemoryRuleReports,
  MemoryRuleRepository,
} from '../../../helpers/memory/memory-rule-repository.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

const denying = (...deny: string[]) => ({ lists: { mode: 'on', users: { deny } } });

describe('admin rules', () => {
  let server: Started;
  let repository: MemoryRuleRepository;
  let broadcast: MemoryRuleBroadcast;
  let ruleReports: MemoryRuleReports;
  const admin = bearer('boss', ['admin']);

  beforeEach(async () => {
    [repository, broadcast] = [new MemoryRuleRepository(), new MemoryRuleBroadcast()];
    const rules = new RuleAdmin({ repository, broadcast, log: silentLog });
    ruleReports = new MemoryRuleReports(new ManualClock());
    const fake = new FakeServices({ rules, ruleReports });
    // Long enough for megabytes on a busy machine.
    server = await startServer(fake, { headersTimeoutMs: 15_000, requestTimeoutMs: 15_000 });
  });
  afterEach(() => server.stop());

  const ask = (method: 'get' | 'put' | 'post', path = ''): request.Test =>
    request(server.operatorsUrl)[method](`/admin/v1/rules${path}`).set('authorization', admin);
  const put = (version: number, rules: object): request.Test => ask('put').send({ version, rules });

  it('publishes changed rules in the name of the caller', async () => {
    const { body: read } = await ask('get').expect(200);
    expect(read.version).to.equal(0);
    read.rules.lists.mode = 'dry_run';
    const { body } = await ask('put').send(read).expect(200);
    expect(body).to.deep.equal({ outcome: 'published', version: 1, seenAtOnce: true });
    expect((await ask('get').expect(200)).body).to.deep.equal({ version: 1, rules: read.rules });
    expect(await broadcast.newerThan(0)).to.have.nested.property('stored.version', 1);
    expect((await repository.history(1))[0]).to.include({ version: 1, actor: 'boss' });
    expect((await put(1, read.rules).expect(200)).body, 'the same rules').to.include({ version: 1 });
  });

  it('publishes rules while Redis is down, and says that it takes longer', async () => {
    broadcast.down = true;
    const { body } = await put(0, denying('eve')).expect(200);
    expect(body).to.deep.equal({ outcome: 'published', version: 1, seenAtOnce: false });
  });

  it('names the APIs that use the newest version, and why other APIs do not', async () => {
    await put(0, denying('eve')).expect(200);
    expect((await ask('get', '/status').expect(200)).body).to.deep.equal({
      version: 1,
      inForce: 'nowhere',
      apis: [],
      canary: null,
    });
    const refused = { version: 1, reasons: ['sign.keys.0 has no secret here'] };
    const api = { host: 'shop-1', refused: null };
    const report = { ...api, canary: null };
    await ruleReports.report({ ...report, processId: 'p1', pid: 1, version: 1 }, 1000);
    await ruleReports.report({ ...report, processId: 'p2', pid: 2, version: 0, refused }, 1000);
    expect((await ask('get', '/status').expect(200)).body).to.deep.equal({
      version: 1,
      inForce: 'not_everywhere',
      apis: [
        { ...api, pid: 2, version: 0, follows: false, refused },
        { ...api, pid: 1, version: 1, follows: true },
      ],
      canary: null,
    });
    ruleReports.down = true;
    expect((await ask('get', '/status').expect(503)).body.code).to.equal('unavailable');
  });

  it('returns 409 with the newest version when another change was faster', async () => {
    await put(0, {}).expect(200);
    const { body } = await put(0, denying('eve')).expect(409);
    expect(body).to.include({ code: 'version_conflict', retryable: false });
    expect(body.detail).to.contain('1');
    expect(await repository.current()).to.include({ version: 1 });
  });

  it('returns 400 with every mistake, and changes nothing, when rules are invalid [S6]', async () => {
    const { body } = await put(0, { lists: { mode: 'x', users: { deny: ['a b'] } }, soon: {} }).expect(400);
    expect(body.errors.map(({ field }: { field: string }) => field)).to.have.members([
      'lists.mode',
      'lists.users.deny.0',
      'soon',
    ]);
    expect(await repository.current()).to.include({ version: 0 });
  });

  it('returns 400 when the body is not a rules document [S6]', async () => {
    for (const body of ['', 'null', '[]', '{', '{"version":0}', '{"rules":{}}', '{"version":-1,"rules":{}}']) {
      await ask('put').set('content-type', 'application/json').send(body).expect(400);
    }
    await ask('put').send({ version: 0, rules: {}, actor: 'me' }).expect(400);
    await ask('put').set('content-type', 'text/plain').send('{}').expect(415);
    expect(await repository.current()).to.include({ version: 0 });
  });

  it('reports mistakes in a check and changes nothing', async () => {
    expect(
      (
        await ask('post', '/check')
          .send({ rules: denying('eve') })
          .expect(200)
      ).body,
    ).to.deep.equal({
      valid: true,
      errors: [],
    });
    const { body } = await ask('post', '/check')
      .send({ version: 7, rules: { lists: { mode: 'x' } } })
      .expect(200);
    expect(body.valid).to.equal(false);
    expect(body.errors[0].field).to.equal('lists.mode');
    expect(await repository.current()).to.include({ version: 0 });
  });

  it('names the actor of each change in the history and shows each version', async () => {
    await put(0, denying('eve')).expect(200);
    await put(1, {}).expect(200);
    const { body } = await ask('get', '/history?limit=1').expect(200);
    expect(body.changes).to.have.length(1);
    expect(body.changes[0]).to.include({ version: 2, actor: 'boss' });
    expect(body.changes[0].at).to.match(/^\d{4}-.*Z$/);
    const { body: old } = await ask('get', '/history/1').expect(200);
    expect(old).to.have.nested.property('rules.lists.users.deny').that.deep.equals(['eve']);
    for (const version of ['3', '0', 'x', '99999999999']) {
      expect((await ask('get', `/history/${version}`).expect(404)).body.code).to.equal('rules_not_found');
    }
    await ask('get', '/history?limit=0').expect(400);
    await ask('get', '/history?since=1').expect(400);
  });

  it('accepts lists of the maximum size, and no larger body', async () => {
    const networks = Array.from(
      { length: 10_000 },
      (_, i) => `2001:db8:${i.toString(16)}:ffff:ffff:ffff:ffff:ffff/128`,
    );
    const users = Array.from({ length: 10_000 }, (_, i) => `${'u'.repeat(59)}${i}`.slice(-64));
    const full = { allow: networks, deny: networks };
    await put(0, { lists: { addresses: full, users: { allow: [], deny: users } } }).expect(200);
    await ask('put')
      .send({ version: 1, rules: { x: 'x'.repeat(2 * 1024 * 1024) } })
      .expect(413);
    await ask('post').expect(405).expect('allow', 'GET, HEAD, PUT');
  });
});
