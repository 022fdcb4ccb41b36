import { expect } from 'chai';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import sinon from 'sinon';
import {
  identityOf,
  parseStat,
  readPidFile,
  signalPidFile,
  writePidFile,
} from '../../../deploy/local/stack/processes.js';
import { useTempFolder } from './temp-folder.js';

/** The test process plays the server. No signal is sent. */
describe('pid file', () => {
  const folder = useTempFolder();
  const path = (): string => join(folder(), 'redis.pid');
  let kill: sinon.SinonStub;
  beforeEach(() => (kill = sinon.stub(process, 'kill').returns(true)));

  it('identifies its process', () => {
    writePidFile(path(), process.pid);
    expect(readPidFile(path())).to.deep.equal(identityOf(process.pid));
    expect(signalPidFile(path(), 'SIGTERM')).to.equal(true);
    expect(kill.args).to.deep.equal([[process.pid, 'SIGTERM']]);
  });

  const changed: [string, object][] = [
    ['started at another time', { startTicks: '1' }],
    ['from before a reboot', { bootId: '00000000-0000-0000-0000-000000000000' }],
  ];
  for (const [what, change] of changed) {
    it(`sends no signal if another process now has the pid: ${what} [L1]`, () => {
      writePidFile(path(), process.pid);
      const noted = JSON.parse(readFileSync(path(), 'utf8')) as object;
      writeFileSync(path(), JSON.stringify({ ...noted, ...change }));
      expect(readPidFile(path())).to.equal(null);
      expect(signalPidFile(path(), 'SIGKILL')).to.equal(false);
      expect(kill.callCount).to.equal(0);
    });
  }

  for (const content of [
    '',
    '{',
    'null',
    '4711',
    '{"pid":-1,"startTicks":"1","bootId":"x"}',
    '{"pid":0}',
    '{"pid":"1"}',
  ]) {
    it(`is ignored if damaged: ${content || 'empty'}`, () => {
      writeFileSync(path(), content);
      expect(readPidFile(path())).to.equal(null);
      expect(signalPidFile(path(), 'SIGTERM')).to.equal(false);
      expect(kill.callCount).to.equal(0);
    });
  }

  it('reads /proc/<pid>/stat if the command has blanks and brackets in its name', () => {
    const fields = Array.from({ length: 50 }, (_, index) => `f${index + 4}`);
    expect(parseStat(`7 (a) b (c) S ${fields.join(' ')}`)).to.deep.equal({ state: 'S', startTicks: 'f22' });
    expect(parseStat('7 (cut')).to.equal(null);
  });
});
