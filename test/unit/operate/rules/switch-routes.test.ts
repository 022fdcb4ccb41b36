import { expect } from 'chai';
import request from 'supertest';
import { SwitchAdmin } from '../../../../src/operate/rules/switches.js';
import { RuleAdmin } from '../../../../src/operate/rules/rule-admin.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { MemoryRuleBroadcast, MemoryRuleRepository } from '../../../helpers/memory/memory-rule-repository.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

describe('admin switches', () => {
  let server: Started;
  let repository: MemoryRuleRepository;
  beforeEach(async () => {
    repository = new MemoryRuleRepository();
    const switches = new SwitchAdmin(
      new RuleAdmin({ repository, broadcast: new MemoryRuleBroadcast(), log: silentLog }),
    );
    server = await startServer(new FakeServices({ switches }));
  });
  afterEach(() => server.stop());

  const ask = (method: 'get' | 'put' | 'post', path = ''): request.Test =>
    request(server.operatorsUrl)
      [method](`/admin/v1/switches${path}`)
      .set('authorization', bearer('boss', ['admin']));

  it('sets a switch for a share of users in the name of the caller', async () => {
    const { body } = await ask('put', '/sale').send({ level: 'L1', percent: 20 }).expect(200);
    expect(body).to.deep.equal({
      outcome: 'switched',
      version: 1,
      seenAtOnce: true,
      endpoint: 'sale',
      level: 'L1',
      percent: 20,
      inForce: true,
    });
    expect((await repository.history(1))[0]).to.include({ version: 1, actor: 'boss' });
    const { body: shown } = await ask('get').expect(200);
    expect(shown).to.include({ version: 1, mode: 'on' });
    expect(shown.switches).to.have.length(4);
    expect(shown.switches).to.deep.include({ endpoint: 'sale', level: 'L1', percent: 20, inForce: true });
    expect(shown.switches).to.deep.include({ endpoint: 'purchase', level: 'L0', percent: 100, inForce: true });
  });

  it('returns 400 with every mistake, and changes nothing, when a change is invalid [S6]', async () => {
    const fields = async (path: string, body: object): Promise<string[]> => {
      const { body: problem } = await ask('put', path).send(body).expect(400);
      return problem.errors.map(({ field }: { field: string }) => field);
    };
    expect(await fields('/purchase', { level: 'L1' })).to.deep.equal(['level']);
    expect(await fields('/sale', { level: 'L9', percent: 101 })).to.deep.equal(['level', 'percent']);
    expect(await fields('/admin', { level: 'L4' })).to.deep.equal(['endpoint']);
    expect(await fields('/sale', { level: 'L4', endpoint: 'purchase' })).to.deep.equal(['endpoint']);
    expect(await fields('/sale', {})).to.deep.equal(['level']);
    for (const text of ['', 'null', '[]', '{', '"L4"']) {
      await ask('put', '/sale').set('content-type', 'application/json').send(text).expect(400);
    }
    await ask('put', '/sale').set('content-type', 'text/plain').send('{}').expect(415);
    await ask('put', '/sale')
      .send({ level: 'L4', note: 'x'.repeat(5000) })
      .expect(413);
    await ask('post', '/sale').expect(405).expect('allow', 'PUT');
    expect(await repository.current()).to.include({ version: 0 });
  });
});
