import { expect } from 'chai';
import sinon from 'sinon';
import { OperationalError } from '../../../src/core/errors.js';
import { OutageLog } from '../../../src/core/outage-log.js';
import { silentLog } from '../../helpers/silent-log.js';

const away = (dependency: 'mysql' | 'redis', message = 'gone'): Error =>
  new OperationalError(dependency, message, { retryable: true });

describe('outage log', () => {
  let warned: unknown[];
  let ended: unknown[];
  const log = {
    ...silentLog,
    warn: (fields: object) => void warned.push(fields),
    info: (fields: object) => void ended.push(fields),
  };
  beforeEach(() => {
    warned = [];
    ended = [];
  });
  afterEach(() => sinon.restore());

  it('logs the first failure of each kind once per outage', () => {
    const outage = new OutageLog(log, { begins: 'it is away', ends: 'it is back' });
    const [mysql, redis, bug] = [away('mysql'), away('redis'), new TypeError('a bug')];
    for (const error of [mysql, away('mysql', 'batch 7'), redis, bug, mysql]) outage.failed(error);
    expect(warned).to.deep.equal([{ err: mysql }, { err: redis }, { err: bug }]);
    outage.end();
    outage.failed(mysql, { batchId: 'b' });
    expect(warned.slice(3)).to.deep.equal([{ err: mysql, batchId: 'b' }]);
    expect(ended).to.deep.equal([{ failures: 5 }]);
  });

  it('ends an outage only after a calm time without a failure', () => {
    const timers = sinon.useFakeTimers({ toFake: ['performance'] });
    const outage = new OutageLog(log, { begins: 'it is away', ends: 'it is back' }, {}, 10_000);
    for (let nth = 0; nth < 5; nth++) {
      outage.failed(away('redis'));
      timers.tick(9_000);
      outage.end();
    }
    expect([warned.length, ended]).to.deep.equal([1, []]);
    timers.tick(1_000);
    outage.end();
    expect(ended).to.deep.equal([{ failures: 5 }]);
  });

  it('logs the start and the end of an outage of many failures once', () => {
    const said: unknown[] = [];
    const log = {
      ...silentLog,
      warn: (fields: object, message: string) => void said.push([message, fields]),
      info: (fields: object, message: string) => void said.push([message, fields]),
    };
    const outage = new OutageLog(log, { begins: 'it is away', ends: 'it is back' }, { where: 'there' });
    outage.end();
    expect(outage.isOut).to.equal(false);
    for (let nth = 0; nth < 3; nth++) outage.failed('why');
    expect(outage.isOut).to.equal(true);
    for (let nth = 0; nth < 2; nth++) outage.end();
    expect(outage.isOut).to.equal(false);
    expect(said).to.deep.equal([
      ['it is away', { err: 'why', where: 'there' }],
      ['it is back', { failures: 3, where: 'there' }],
    ]);
  });
});
