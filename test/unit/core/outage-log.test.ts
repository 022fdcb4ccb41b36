import { expect } from 'chai';
import { OutageLog } from '../../../src/core/outage-log.js';
import { silentLog } from '../../helpers/silent-log.js';

describe('outage log', () => {
  it('logs the first of many failures in a row and their end once, and knows whether the outage lasts', () => {
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
