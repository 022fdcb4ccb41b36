import { expect } from 'chai';
import { npmEndedCheck } from '../../../deploy/local/npm-watch.js';
import { parentOf } from '../../../deploy/local/stack/processes.js';

const SCRIPT = 'node deploy/local/main.mjs up';
const [LOGIN, NPM, SHELL, SELF] = [100, 200, 300, 400];

describe('the end of npm', () => {
  let parents: Map<number, number>;
  const check = (commands: Record<number, string>): (() => boolean) =>
    npmEndedCheck(SCRIPT, SELF, {
      parentOf: (pid) => parents.get(pid) ?? null,
      commandOf: (pid) => commands[pid] ?? '',
    });

  describe('with a shell between npm and us', () => {
    beforeEach(
      () =>
        (parents = new Map([
          [SELF, SHELL],
          [SHELL, NPM],
          [NPM, LOGIN],
        ])),
    );
    const start = (): (() => boolean) => check({ [SHELL]: `sh\0-c\0${SCRIPT}\0`, [NPM]: 'npm start' });

    it('is noticed when npm alone was killed', () => {
      const hasEnded = start();
      expect(hasEnded()).to.equal(false);
      parents.set(SHELL, 1);
      expect(hasEnded()).to.equal(true);
    });

    it('is noticed when the shell was killed with it', () => {
      const hasEnded = start();
      parents.set(SELF, 1);
      expect(hasEnded()).to.equal(true);
    });

    it('is not the end of the terminal that npm was started in', () => {
      const hasEnded = start();
      parents.set(NPM, 1);
      expect(hasEnded()).to.equal(false);
    });
  });

  it('is noticed without a shell in between, and the end of the terminal is none', () => {
    parents = new Map([
      [SELF, NPM],
      [NPM, LOGIN],
    ]);
    const hasEnded = check({ [NPM]: 'npm start' });
    parents.set(NPM, 1);
    expect(hasEnded(), 'the terminal').to.equal(false);
    parents.set(SELF, 1);
    expect(hasEnded(), 'npm').to.equal(true);
  });

  it('is read from the real processes of this machine', () => {
    expect(parentOf(process.pid)).to.equal(process.ppid);
    expect(parentOf(2 ** 30)).to.equal(null);
  });
});
